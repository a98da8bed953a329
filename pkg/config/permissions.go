// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// Permissions are what a token may do at the Git service: GitHub's names ("pull_requests") and
// levels.
type Permissions map[string]string

// runReads returns what the token of each run may do: clone.
func runReads() Permissions { return Permissions{"contents": levelRead, "metadata": levelRead} }

const (
	levelRead  = "read"
	levelWrite = "write"
	levelAdmin = "admin"
)

// rank orders the levels; an unknown one has rank 0.
func rank(level string) int {
	return slices.Index([]string{levelRead, levelWrite, levelAdmin}, level) + 1
}

var permissionName = regexp.MustCompile(`^[a-z][a-z_]{0,62}$`)

// RunToken returns what the token of a run may do when its Repository asks for permissions. A
// permission above the administrator's level is granted at that level. denied lists what was asked
// for and not granted, such as "checks: write", in a fixed order.
func (c *Config) RunToken(asked map[string]pacv1alpha1.PermissionLevel) (granted Permissions, denied []string) {
	granted = runReads()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		level, most := string(asked[name]), c.RunPermissions[name]
		if rank(level) > rank(most) && rank(level) > rank(granted[name]) {
			denied = append(denied, name+": "+level)
			level = most
		}
		if rank(level) > rank(granted[name]) {
			granted[name] = level
		}
	}
	return granted, denied
}

// permissions reads "pull_requests: write, packages: read"; none when the key is not set.
func (p *parser) permissions(key string, previous Permissions) Permissions {
	v, ok := p.value(key)
	if !ok {
		return nil
	}
	read := Permissions{}
	for part := range strings.SplitSeq(strings.TrimRight(v, ","), ",") {
		name, level, _ := strings.Cut(part, ":")
		name, level = strings.TrimSpace(name), strings.TrimSpace(level)
		if !permissionName.MatchString(name) || rank(level) == 0 {
			p.bad(key, strconv.Quote(strings.TrimSpace(part))+" is not a permission",
				`GitHub's names with a level, like "pull_requests: write, packages: read"; levels: read, write, admin`)
			return previous
		}
		read[name] = level
	}
	return read
}
