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
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

var idPattern = regexp.MustCompile(`^` + delivery.IDPrefix + `([1-9][0-9]{0,17})$`)

// CanWrite reports whether the user is an active member with the role Developer or more, directly
// or through a group: these may push (https://docs.gitlab.com/user/permissions/). Guests and
// Reporters may not, unlike in Pipelines-as-Code.
func (r *repository) CanWrite(ctx context.Context, user string) (bool, error) {
	return r.hasRole(ctx, user, gl.DeveloperPermissions)
}

// Member reports whether the user is an active member of the project, directly or through a group,
// with any role.
func (r *repository) Member(ctx context.Context, user string) (bool, error) {
	return r.hasRole(ctx, user, gl.MinimalAccessPermissions)
}

func (r *repository) hasRole(ctx context.Context, user string, least gl.AccessLevelValue) (bool, error) {
	if number := idPattern.FindStringSubmatch(user); number != nil {
		id, err := strconv.Atoi(number[1])
		if err != nil {
			return false, fault.Operatorf(reasonBadUser, "%q is no account of GitLab: %w", user, err)
		}
		return r.memberByID(ctx, id, least)
	}
	if !delivery.ValidName(user) {
		return false, nil // GitLab has no such name
	}
	return r.memberByName(ctx, user, least)
}

func (r *repository) memberByID(ctx context.Context, id int, least gl.AccessLevelValue) (bool, error) {
	const what = "asking for the user's role"
	found, _, err := api.Get[member](r.Client, fmt.Sprintf("projects/%s/members/all/%d", gl.PathEscape(r.Path), id),
		nil, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return false, r.Absent(ctx, what)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	if found.ID != id {
		return false, api.NoAnswer(what)
	}
	return found.counts(least, r.now()), nil
}

// memberByName searches the members. GitLab's search also matches other names and parts of them,
// and may list one user several times.
func (r *repository) memberByName(ctx context.Context, user string, least gl.AccessLevelValue) (bool, error) {
	const what = "asking for the user's role"
	members, err := r.members(ctx, what, "projects/"+gl.PathEscape(r.Path), user)
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.Absent(ctx, what); err != nil {
			return false, err
		}
		return false, fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab does not show who is a member (yet)", what)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	return r.anyOf(what, user, least, members)
}

// members lists the members of a project or group that match the name, including inherited ones;
// all members without a name (https://docs.gitlab.com/api/members/).
func (r *repository) members(ctx context.Context, what, of, name string) ([]*member, error) {
	opts := &gl.ListProjectMembersOptions{} // the options of a group are the same
	if name != "" {
		opts.Query = &name
	}
	return api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*member, *gl.Response, error) {
		return api.Get[[]*member](r.Client, of+"/members/all", opts, page...)
	})
}

// anyOf reports whether the user is among the members, active and with at least the level least.
func (r *repository) anyOf(what, user string, least gl.AccessLevelValue, members []*member) (bool, error) {
	for _, m := range members {
		if m == nil || m.Username == "" {
			return false, api.NoAnswer(what) // an incomplete entry says nothing about the user
		}
		if (strings.EqualFold(m.Username, user) || user == delivery.IDPrefix+strconv.Itoa(m.ID)) && m.counts(least, r.now()) {
			return true, nil
		}
	}
	return false, nil
}

// stateActive is the state of an account that is not blocked, and of a membership that is active.
const stateActive = "active"

// member is a member of a project or group.
type member struct {
	ID       int    `json:"id"`
	Username string `json:"username"`
	// State is the account's: active or blocked, for example.
	State string `json:"state"`
	// Membership is active, or awaiting for a user beyond the paid seats, who has no rights yet.
	// GitLab's free edition has no such field.
	Membership *string             `json:"membership_state"`
	Level      gl.AccessLevelValue `json:"access_level"`
	// Ends is the day on which the membership ends; GitLab removes ended ones only once a day.
	Ends *gl.ISOTime `json:"expires_at"`
}

func (m *member) counts(least gl.AccessLevelValue, now time.Time) bool {
	begun := m.Membership == nil || *m.Membership == stateActive
	return m.State == stateActive && begun && (m.Ends == nil || time.Time(*m.Ends).After(now)) && m.Level >= least
}
