// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"path"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Name is GitEventSpec.provider of the events this package decodes.
const Name = git.GitLab

// IDPrefix is the prefix of an account's id where a payload has no username. Usernames have no
// colon.
const IDPrefix = "id:"

// segmentPattern is GitLab's alphabet of names of groups, projects and users, which become parts of
// API paths.
var segmentPattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// ValidName reports whether GitLab could have given a group, project or user the name.
func ValidName(name string) bool { return segmentPattern.MatchString(name) }

// ValidPath reports whether a text is a project's full path: groups and a name, without characters
// that have a meaning in URLs.
func ValidPath(full string) bool {
	parts := strings.Split(full, "/")
	for _, part := range parts {
		if !segmentPattern.MatchString(part) || strings.Trim(part, ".") == "" {
			return false
		}
	}
	return len(parts) > 1 && path.Clean(full) == full
}
