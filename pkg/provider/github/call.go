// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// secondaryWait is how long a secondary limit lasts that names no time (G2).
const secondaryWait = time.Minute

// failed is provider.Failed, after what go-github itself refuses to call.
func failed(what string, err error) error {
	var limit *gh.RateLimitError
	var abuse *gh.AbuseRateLimitError
	switch {
	case errors.As(err, &limit):
		err = throttled(time.Until(limit.Rate.Reset.Time))
	case errors.As(err, &abuse):
		err = throttled(abuse.GetRetryAfter())
	}
	return provider.Failed(what, err)
}

// throttled is go-github's refusal to call while it remembers a limit.
func throttled(wait time.Duration) error {
	if wait <= 0 {
		wait = secondaryWait
	}
	return fault.Throttledf(fault.ReasonRateLimited, wait, "waiting for GitHub's rate limit to be lifted")
}

// readable returns nil if the installation can read the repository. GitHub answers 404 for what it hides, so that a
// 404 below a repository means "absent" only if this says nil (G7).
func (r *repository) readable(ctx context.Context) error {
	_, err := r.describe(ctx)
	return err
}

// describe returns what GitHub says of the repository.
func (r *repository) describe(ctx context.Context) (*gh.Repository, error) {
	got, _, err := r.client.Repositories.Get(ctx, r.owner, r.name)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Operatorf("RepositoryNotReadable",
			"GitHub shows no repository %s to the App: it was deleted or renamed, or the App is not installed on it", r.fullName())
	case err != nil:
		return nil, failed("reading "+r.fullName(), err)
	case got.GetID() <= 0:
		return nil, noAnswer("reading " + r.fullName())
	case got.GetID() != r.id:
		return nil, fault.Operatorf("RepositoryReplaced",
			"%s is now another repository than the one the event came from", r.fullName())
	}
	return got, nil
}

// unavailable interprets the failure to read something at a commit: an empty repository, or one whose replicas have
// not all seen the commit, is asked again.
func (r *repository) unavailable(ctx context.Context, what, sha string, err error) error {
	switch provider.StatusCode(err) {
	case http.StatusConflict:
		return fault.Transientf("RepositoryEmpty", "%s: %s is empty", what, r.fullName())
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		if err := r.readable(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no commit %s (yet)", what, r.fullName(), sha)
	}
	return failed(what, err)
}
