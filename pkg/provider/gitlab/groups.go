// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxGroup is how much of a group's path a message repeats; GitLab's have at most 255 characters.
const maxGroup = 255

// groupPattern is GitLab's alphabet of full group paths, for example "acme/platform/release".
var groupPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,20}$`)

// InTeam reports whether the user is an active member of a group, by its full path, directly or
// through a group above, with any role
// (https://docs.gitlab.com/api/members/#list-all-members-of-a-group-or-project-including-inherited-and-invited-members).
func (r *repository) InTeam(ctx context.Context, group, user string) (bool, error) {
	group = strings.Trim(group, "/")
	if !groupPattern.MatchString(group) {
		return false, noGroup(group)
	}
	const what = "asking who is in the group"
	name := user
	switch {
	case idPattern.MatchString(user):
		name = "" // members cannot be searched by id: all are listed
	case !delivery.ValidName(user):
		return false, nil
	}
	members, err := r.members(ctx, what, "groups/"+gl.PathEscape(group), name)
	if provider.StatusCode(err) == http.StatusNotFound {
		return false, noGroup(group)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	return r.anyOf(what, user, gl.MinimalAccessPermissions, members)
}

func noGroup(group string) error {
	return fault.Invalidf(fault.ReasonTeamNotFound, "GitLab shows no group %q to the token, so it has no members: "+
		"name it in settings.policy by its full path, let the token's account see it, or remove it there", text.Bytes(group, maxGroup))
}
