// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// CanWrite reads the user's permission for the repository, whatever it comes from (direct, team,
// organization, owner). In this answer GitHub maps the role maintain to write and triage to read
// (https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user).
func (r *repository) CanWrite(ctx context.Context, user string) (bool, error) {
	if !loginPattern.MatchString(user) {
		return false, nil // GitHub has no such login
	}
	const what = "asking for the user's permission"
	level, _, err := r.client.Repositories.GetPermissionLevel(ctx, r.owner, r.name, url.PathEscape(user))
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.readable(ctx); err != nil {
			return false, wrapf(what, err)
		}
		return false, nil
	}
	if err != nil {
		return false, limits.Failed(what, err)
	}
	switch level.GetPermission() {
	case "admin", "maintain", "write":
		return true, nil
	case "triage", "read", "none":
		return false, nil
	}
	return false, fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub answered %q", what, level.GetPermission())
}

// Actor returns the actor of the delivery, which GitHub has signed.
func (r *repository) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, reported string) (string, error) {
	return reported, nil
}
