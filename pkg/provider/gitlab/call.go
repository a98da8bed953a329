// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	perPage  = 100
	maxPages = 100
)

// list reads all pages. What is longer than can be read, and an answer that holds no list, is an error: what was not
// told is not "nothing".
func list[T any](ctx context.Context, what string, read func(...gl.RequestOptionFunc) ([]T, *gl.Response, error)) ([]T, error) {
	all := []T{}
	next := query(url.Values{"per_page": {strconv.Itoa(perPage)}})
	for range maxPages {
		part, resp, err := read(gl.WithContext(ctx), next)
		if err != nil {
			return nil, err
		}
		if part == nil {
			return nil, noAnswer(what)
		}
		all = append(all, part...)
		switch {
		case resp.NextLink != "":
			next = gl.WithKeysetPaginationParameters(resp.NextLink)
		case resp.NextPage > 0:
			next = query(url.Values{"per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(resp.NextPage)}})
		default:
			return all, nil
		}
	}
	return nil, fault.Operatorf("TooMany", "%s: GitLab lists more than %d", what, maxPages*perPage)
}

// query sets parameters of any call: those go-gitlab takes from a link to a next page.
func query(values url.Values) gl.RequestOptionFunc {
	return gl.WithKeysetPaginationParameters("?" + values.Encode())
}

// readable returns nil if the token can read the project. GitLab answers 404 for what it hides, so that a 404 below a
// project means "absent" only if this says nil (G7, L4).
func (r *repository) readable(ctx context.Context) error {
	_, err := r.describe(ctx)
	return err
}

// describe returns what GitLab says of the project.
func (r *repository) describe(ctx context.Context) (*gl.Project, error) {
	got, _, err := r.client.Projects.GetProject(r.path, nil, gl.WithContext(ctx))
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Operatorf("RepositoryNotReadable",
			"GitLab shows no project %s to the token: it was deleted or moved, or the token's user is no member of it", r.path)
	case err != nil:
		return nil, provider.Failed("reading "+r.path, err)
	case got.ID <= 0:
		return nil, noAnswer("reading " + r.path)
	case int64(got.ID) != r.id:
		return nil, fault.Operatorf("RepositoryReplaced",
			"%s is now another project than the one the event came from", r.path)
	}
	return got, nil
}

// unavailable interprets the failure to read something at a commit: of a project that can be read, the commit is not
// there yet.
func (r *repository) unavailable(ctx context.Context, what, sha string, err error) error {
	if provider.StatusCode(err) != http.StatusNotFound {
		return provider.Failed(what, err)
	}
	if err := r.readable(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no commit %s (yet)", what, r.path, sha)
}

func noAnswer(what string) error {
	return fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab's answer does not hold what was asked for", what)
}
