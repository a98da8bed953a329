// SPDX-License-Identifier: Apache-2.0

// Package api calls a GitLab with one token.
package api

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
	// PerPage is GitLab's maximum for a page.
	PerPage  = 100
	maxPages = 100
)

// List reads all pages. A list that is too long, or an answer without a list, is an error: it does
// not mean "none".
func List[T any](
	ctx context.Context, what string, read func(...gl.RequestOptionFunc) ([]T, *gl.Response, error),
) ([]T, error) {
	ctx = provider.Pages(ctx)
	all := []T{}
	next := Query(url.Values{"per_page": {strconv.Itoa(PerPage)}})
	for range maxPages {
		part, resp, err := read(gl.WithContext(ctx), next)
		if err != nil {
			return nil, err
		}
		if part == nil {
			return nil, NoAnswer(what)
		}
		all = append(all, part...)
		switch {
		case resp.NextLink != "":
			next = gl.WithKeysetPaginationParameters(resp.NextLink)
		case resp.NextPage > 0:
			next = Query(url.Values{"per_page": {strconv.Itoa(PerPage)}, "page": {strconv.Itoa(resp.NextPage)}})
		default:
			return all, nil
		}
	}
	return nil, fault.Operatorf(reasonTooMany, "%s: GitLab lists more than %d", what, maxPages*PerPage)
}

// Query sets parameters of any call, including those that go-gitlab takes from the link to a next
// page.
func Query(values url.Values) gl.RequestOptionFunc {
	return gl.WithKeysetPaginationParameters("?" + values.Encode())
}

// Project is one project as one token sees it. It is called by its path.
type Project struct {
	Client *gl.Client
	Path   string
	ID     int64
}

// Readable returns nil if the token can read the project. GitLab answers 404 for what it hides, so
// a 404 below a project means "missing" only if this returns nil (G7, L4).
func (p *Project) Readable(ctx context.Context) error {
	_, err := p.Describe(ctx)
	return err
}

// Describe returns GitLab's description of the project.
func (p *Project) Describe(ctx context.Context) (*gl.Project, error) {
	got, _, err := p.Client.Projects.GetProject(p.Path, nil, gl.WithContext(ctx))
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, fault.Operatorf(reasonRepositoryNotReadable,
			"GitLab shows no project %s to the token: it was deleted or moved, or the token's user is no member of it", p.Path)
	case err != nil:
		return nil, provider.Failed("reading "+p.Path, err)
	case got.ID <= 0:
		return nil, NoAnswer("reading " + p.Path)
	case p.ID != 0 && int64(got.ID) != p.ID:
		return nil, fault.Operatorf(reasonRepositoryReplaced,
			"%s is now another project than the one the event came from", p.Path)
	}
	return got, nil
}

// Unavailable interprets the failure to read something at a commit: if the project can be read, the
// commit is not there yet.
func (p *Project) Unavailable(ctx context.Context, what, sha string, err error) error {
	if provider.StatusCode(err) != http.StatusNotFound {
		return provider.Failed(what, err)
	}
	if err := p.Readable(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no commit %s (yet)", what, p.Path, sha)
}

// NoAnswer returns the fault of an answer without the requested content.
func NoAnswer(what string) error {
	return fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab's answer does not hold what was asked for", what)
}

// Get reads what go-gitlab has no complete type for.
func Get[T any](
	client *gl.Client, path string, opts any, options ...gl.RequestOptionFunc,
) (answer T, resp *gl.Response, err error) {
	req, err := client.NewRequest(http.MethodGet, path, opts, options)
	if err != nil {
		return answer, nil, err //nolint:wrapcheck // as the errors of go-gitlab's own calls
	}
	resp, err = client.Do(req, &answer)
	return answer, resp, err //nolint:wrapcheck // as above
}

// Absent returns nil if a 404 was an answer about the requested object, because the project itself
// can be read.
func (p *Project) Absent(ctx context.Context, what string) error {
	if err := p.Readable(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
