// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

var idPattern = regexp.MustCompile(`^` + delivery.IDPrefix + `([1-9][0-9]{0,17})$`)

// CanWrite tells whether the user is an active member with the role Developer or more, directly or through a group; that
// is who may push (https://docs.gitlab.com/user/permissions/). Guests and Reporters may not, unlike in Pipelines-as-Code.
func (r *repository) CanWrite(ctx context.Context, user string) (bool, error) {
	if number := idPattern.FindStringSubmatch(user); number != nil {
		id, err := strconv.Atoi(number[1])
		if err != nil {
			return false, fault.Operatorf("BadUser", "%q is no account of GitLab: %w", user, err)
		}
		return r.memberByID(ctx, id)
	}
	if !delivery.ValidName(user) {
		return false, nil // GitLab issues no such name, so it is nobody's
	}
	return r.memberByName(ctx, user)
}

func (r *repository) memberByID(ctx context.Context, id int) (bool, error) {
	const what = "asking for the user's role"
	member, _, err := r.client.ProjectMembers.GetInheritedProjectMember(r.path, id, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return false, r.nobody(ctx, what)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	if member.ID != id {
		return false, noAnswer(what)
	}
	return r.writes(member), nil
}

// memberByName searches among the members: GitLab finds more than the username (names, parts of them), and may name one
// that is a member in several ways more than once.
func (r *repository) memberByName(ctx context.Context, user string) (bool, error) {
	const what = "asking for the user's role"
	opts := &gl.ListProjectMembersOptions{Query: &user}
	members, err := list(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.ProjectMember, *gl.Response, error) {
		return r.client.ProjectMembers.ListAllProjectMembers(r.path, opts, page...)
	})
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.nobody(ctx, what); err != nil {
			return false, err
		}
		return false, fault.Transientf("BadAnswer", "%s: GitLab does not show who is a member (yet)", what)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	for _, member := range members {
		if member.Username == "" {
			return false, noAnswer(what) // of something else, which says nothing of the user
		}
		if strings.EqualFold(member.Username, user) && r.writes(member) {
			return true, nil
		}
	}
	return false, nil
}

// nobody is nil if a 404 was an answer about the user.
func (r *repository) nobody(ctx context.Context, what string) error {
	if err := r.readable(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// writes takes a membership that ended for none: GitLab removes those once a day only.
func (r *repository) writes(m *gl.ProjectMember) bool {
	ended := m.ExpiresAt != nil && !time.Time(*m.ExpiresAt).After(r.now())
	return m.State == "active" && m.AccessLevel >= gl.DeveloperPermissions && !ended
}
