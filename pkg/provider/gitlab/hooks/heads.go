// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// MaxHeads is how many open merge requests Heads returns at most.
const MaxHeads = 20

// Heads implements provider.HookLog.
func (l *Log) Heads(ctx context.Context, since time.Time) ([]provider.Head, error) {
	branch, err := l.defaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	merging, err := l.openMergeRequests(ctx, since)
	if err != nil {
		return nil, err
	}
	return append(branch, merging...), nil
}

// defaultBranch returns the head of the default branch, none for an empty project.
func (l *Log) defaultBranch(ctx context.Context) ([]provider.Head, error) {
	var project struct {
		Branch string `json:"default_branch"`
	}
	if _, err := l.call(http.MethodGet, l.path, &project, gl.WithContext(ctx)); err != nil {
		return nil, provider.Failed("reading the project", err)
	}
	if project.Branch == "" {
		return nil, nil
	}
	const what = "reading the default branch"
	var branch gl.Branch
	_, err := l.call(http.MethodGet, l.path+"/repository/branches/"+url.PathEscape(project.Branch), &branch,
		gl.WithContext(ctx))
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, provider.Failed(what, err)
	case branch.Commit == nil || branch.Commit.CommittedDate == nil || !provider.IsSHA(branch.Commit.ID):
		return nil, api.NoAnswer(what)
	}
	return []provider.Head{{Branch: project.Branch, SHA: branch.Commit.ID, At: *branch.Commit.CommittedDate}}, nil
}

// openMergeRequests returns the heads of those that have changed since. Merge requests may be
// turned off.
func (l *Log) openMergeRequests(ctx context.Context, since time.Time) ([]provider.Head, error) {
	const what = "listing open merge requests"
	var open []struct {
		Number  int64     `json:"iid"`
		SHA     string    `json:"sha"`
		Branch  string    `json:"source_branch"`
		Updated time.Time `json:"updated_at"`
	}
	wanted := url.Values{
		"state":         {"opened"},
		"order_by":      {"updated_at"},
		"sort":          {"desc"},
		"updated_after": {since.UTC().Format(time.RFC3339)},
		"per_page":      {strconv.Itoa(MaxHeads)},
	}
	_, err := l.call(http.MethodGet, l.path+"/merge_requests", &open, gl.WithContext(ctx), api.Query(wanted))
	if code := provider.StatusCode(err); code == http.StatusForbidden || code == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	var heads []provider.Head
	for _, m := range open[:min(len(open), MaxHeads)] {
		if m.Number <= 0 {
			return nil, api.NoAnswer(what)
		}
		if provider.IsSHA(m.SHA) && !m.Updated.Before(since) { // a merge request without commits has no head
			heads = append(heads, provider.Head{Pull: m.Number, Branch: m.Branch, SHA: m.SHA})
		}
	}
	return heads, nil
}

// Moved implements provider.HookLog. Each push to a merge request adds a version.
func (l *Log) Moved(ctx context.Context, pull int64) (at time.Time, err error) {
	const what = "listing the merge request's versions"
	type version struct {
		Created time.Time `json:"created_at"`
	}
	versions, err := api.List(ctx, what, func(options ...gl.RequestOptionFunc) ([]version, *gl.Response, error) {
		var page []version
		resp, err := l.call(http.MethodGet, fmt.Sprintf("%s/merge_requests/%d/versions", l.path, pull), &page, options...)
		return page, resp, err
	})
	if err != nil {
		return at, provider.Failed(what, err)
	}
	for _, v := range versions {
		if v.Created.After(at) {
			at = v.Created
		}
	}
	return at, nil
}
