// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// readable returns nil if the installation can read the repository. GitHub answers 404 for what it
// hides, so a 404 below a repository means "missing" only if this returns nil (G7).
func (r *repository) readable(ctx context.Context) error {
	_, err := r.describe(ctx)
	return err
}

// noAccess says why the repository may be hidden.
func (r *repository) noAccess() string {
	if r.app == 0 {
		return "the token has no access to it"
	}
	return "the App is not installed on it"
}

// describe returns GitHub's description of the repository.
func (r *repository) describe(ctx context.Context) (*gh.Repository, error) {
	got, _, err := r.client.Repositories.Get(ctx, r.owner, r.name)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Operatorf(reasonRepositoryNotReadable,
			"GitHub shows no repository %s to %s: it was deleted or renamed, or %s", r.fullName(), r.caller, r.noAccess())
	case err != nil:
		return nil, limits.Failed("reading "+r.fullName(), err)
	case got.GetID() <= 0:
		return nil, noAnswer("reading " + r.fullName())
	case r.id != 0 && got.GetID() != r.id:
		return nil, fault.Operatorf(reasonRepositoryReplaced,
			"%s is now another repository than the one the event came from", r.fullName())
	}
	return got, nil
}

// unavailable interprets the failure to read something at a commit. An empty repository, or one
// whose replicas have not all received the commit, is retried.
func (r *repository) unavailable(ctx context.Context, what, sha string, err error) error {
	switch provider.StatusCode(err) {
	case http.StatusConflict:
		return fault.Transientf(reasonRepositoryEmpty, "%s: %s is empty", what, r.fullName())
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		if err := r.readable(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no commit %s (yet)", what, r.fullName(), sha)
	}
	return limits.Failed(what, err)
}
