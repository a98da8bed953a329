// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// headRef is what GitLab calls the commit that the default branch is at (https://docs.gitlab.com/api/repository_files/).
const headRef = "HEAD"

// RootFiles reads files of the default branch. The directory says which content each of them has: one that has another by the time it
// is read is of another commit.
func (r *repository) RootFiles(ctx context.Context, names ...string) (map[string][]byte, error) {
	nodes, err := r.tree(ctx, "", "", false)
	if err != nil {
		return nil, r.unavailable(ctx, "reading the root directory of the default branch", headRef, err)
	}
	entries := make([]provider.Entry, 0, len(nodes))
	for _, n := range nodes {
		entries = append(entries, provider.Entry{Name: n.Name, Type: n.Type, Mode: n.Mode, ID: n.ID})
	}
	return provider.RootFiles(entries, names, func(e provider.Entry) ([]byte, error) {
		return r.trees.File(r.reader, e.ID, func() ([]byte, error) {
			data, err := r.contents(ctx, r.path, headRef, e.Name)
			if err == nil && !provider.IsBlob(e.ID, data) {
				err = fault.Transientf(fault.ReasonCommitUnknown, "reading %s: the default branch has moved meanwhile", e.Name)
			}
			return data, err
		})
	})
}
