// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"path"
	"regexp"
	"strings"
)

// Name is GitEventSpec.provider of the events this package decodes.
const Name = "gitlab"

// IDPrefix names an account by its number, where a payload tells no username. No username has a
// colon.
const IDPrefix = "id:"

// segmentPattern is GitLab's own alphabet for names of groups, projects and users. It matters:
// names become parts of API paths.
var segmentPattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// ValidName reports whether GitLab could have given a group, project or user the name.
func ValidName(name string) bool { return segmentPattern.MatchString(name) }

// ValidPath reports whether a project's full path is one: groups and a name, without anything that
// a URL reads as more.
func ValidPath(full string) bool {
	parts := strings.Split(full, "/")
	for _, part := range parts {
		if !segmentPattern.MatchString(part) || strings.Trim(part, ".") == "" {
			return false
		}
	}
	return len(parts) > 1 && path.Clean(full) == full
}
