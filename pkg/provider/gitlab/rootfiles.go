// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// headRef is GitLab's name of the commit that the default branch is at
// (https://docs.gitlab.com/api/repository_files/).
const headRef = "HEAD"

// RootFiles reads files of the default branch. The list of the directory has the id of each file's
// content. If a file has another id when it is read, it is of another commit.
func (r *repository) RootFiles(ctx context.Context, names ...string) (map[string][]byte, error) {
	entries, err := r.root(ctx, "")
	if err != nil {
		return nil, r.Unavailable(ctx, "reading the root directory of the default branch", headRef, err)
	}
	return provider.RootFiles(entries, names, func(e provider.Entry) ([]byte, error) {
		return r.trees.File(r.reader, e.ID, func() ([]byte, error) {
			data, err := r.contents(ctx, r.Path, headRef, e.Name)
			if err == nil && !provider.IsBlob(e.ID, data) {
				err = fault.Transientf(fault.ReasonCommitUnknown, "reading %s: the default branch has moved meanwhile", e.Name)
			}
			return data, err
		})
	})
}

// Differ implements provider.History. The project has a fork's commits too (Head).
func (r *repository) Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error) {
	return provider.Differ(earlier, later, names, func(sha string) ([]provider.Entry, error) {
		what := "reading the root directory of commit " + sha
		entries, err := r.root(ctx, sha)
		if err != nil {
			return nil, r.Unavailable(ctx, what, sha, err)
		}
		for _, e := range entries {
			if !provider.IsSHA(e.ID) {
				return nil, api.NoAnswer(what)
			}
		}
		return entries, nil
	})
}

// root lists the root directory of a commit, or of the default branch without one.
func (r *repository) root(ctx context.Context, sha string) ([]provider.Entry, error) {
	nodes, err := r.tree(ctx, sha, "", false)
	entries := make([]provider.Entry, 0, len(nodes))
	for _, n := range nodes {
		entries = append(entries, provider.Entry{Name: n.Name, Type: n.Type, Mode: n.Mode, ID: n.ID})
	}
	return entries, err
}
