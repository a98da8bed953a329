// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxSlug is how much of a team's name a message repeats; GitHub's slugs are shorter.
const maxSlug = 100

// slugPattern is GitHub's alphabet of team slugs.
var slugPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// Member reports whether the user is a collaborator of the repository, with any role, or a member
// of its organization
// (https://docs.github.com/rest/collaborators/collaborators#check-if-a-user-is-a-repository-collaborator
// and https://docs.github.com/rest/orgs/members#check-organization-membership-for-a-user). GitHub
// redirects an App that may not read members to the public ones.
func (r *repository) Member(ctx context.Context, user string) (bool, error) {
	if !loginPattern.MatchString(user) {
		return false, nil
	}
	const collaborator, member = "asking whether the user is a collaborator", "asking whether the user is a member of the organization"
	_, resp, err := r.client.Repositories.IsCollaborator(ctx, r.owner, r.name, url.PathEscape(user))
	is, err := yesOrNo(collaborator, resp, err)
	if err != nil || is {
		return is, err
	}
	if err := r.readable(ctx); err != nil {
		return false, wrapf(collaborator, err)
	}
	_, resp, err = r.client.Organizations.IsMember(ctx, r.owner, url.PathEscape(user))
	return yesOrNo(member, resp, err)
}

// yesOrNo reads an answer that is only a status. go-github takes every 2xx for a yes.
func yesOrNo(what string, resp *gh.Response, err error) (bool, error) {
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, limits.Failed(what, err)
	case resp == nil || resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusNotFound:
		return false, noAnswer(what)
	}
	return resp.StatusCode == http.StatusNoContent, nil
}

// InTeam reports whether the user is an active member of a team of the organization, or of a team
// below it, by the team's slug
// (https://docs.github.com/rest/teams/members#get-team-membership-for-a-user). GitHub answers 404
// for a user who is not a member and for a team that does not exist.
func (r *repository) InTeam(ctx context.Context, team, user string) (bool, error) {
	const what = "asking whether the user is in the team"
	if !slugPattern.MatchString(team) {
		return false, r.noTeam(team)
	}
	if !loginPattern.MatchString(user) {
		return false, nil
	}
	membership, _, err := r.client.Teams.GetTeamMembershipBySlug(ctx, r.owner, team, url.PathEscape(user))
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound:
		return false, r.hasTeam(ctx, team)
	case err != nil:
		return false, limits.Failed(what, err)
	case membership.GetState() == "active":
		return true, nil
	case membership.GetState() == "pending": // invited
		return false, nil
	}
	return false, noAnswer(what)
}

// hasTeam returns nil if the organization has the team.
func (r *repository) hasTeam(ctx context.Context, team string) error {
	const what = "reading the team"
	got, _, err := r.client.Teams.GetTeamBySlug(ctx, r.owner, team)
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound:
		return r.noTeam(team)
	case err != nil:
		return limits.Failed(what, err)
	case !strings.EqualFold(got.GetSlug(), team):
		return noAnswer(what)
	}
	return nil
}

// noTeam returns the fault for a team that GitHub does not show. GitHub answers a classic token
// without the scope read:org as if there were no team.
func (r *repository) noTeam(team string) error {
	scope := ""
	if r.app == 0 {
		scope = ", or, for a classic token, add the scope read:org"
	}
	return fault.Invalidf(fault.ReasonTeamNotFound, "GitHub shows no team %q of %s to %s, so it has no members: "+
		"name it in settings.policy by its slug (as in its web address), or remove it there%s",
		text.Bytes(team, maxSlug), r.owner, r.caller, scope)
}
