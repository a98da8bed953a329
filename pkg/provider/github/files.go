// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Our own limits on a definition directory: they bound the memory and the calls of one event.
const (
	maxFile  = 1 << 20 // bytes of one file; also what GitHub's contents API returns inline
	maxFiles = 1000
	maxTotal = 16 << 20 // bytes of all files
	maxTrees = 1000     // directories walked when GitHub does not list them at once
	parallel = 4        // blobs read at once; G2 bounds what all events of an installation do at once
)

// Files returns the YAML files below dir at sha, sorted by path. Their text is returned as it is, whatever it is.
func (r *repository) Files(ctx context.Context, sha, dir string) ([]provider.File, error) {
	if err := checkSHA(sha); err != nil {
		return nil, err
	}
	what := "reading " + dir
	tree, err := r.subtree(ctx, sha, dir)
	if err != nil || tree == "" {
		return nil, err
	}
	entries, err := r.list(ctx, what, tree)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e *gh.TreeEntry) bool {
		ext := path.Ext(e.GetPath())
		return e.GetType() != "blob" || (ext != ".yaml" && ext != ".yml")
	})
	if err := checkSizes(dir, entries); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b *gh.TreeEntry) int { return strings.Compare(a.GetPath(), b.GetPath()) })
	return r.blobs(ctx, dir, entries)
}

// subtree returns the id of the tree at dir, empty if there is none.
func (r *repository) subtree(ctx context.Context, sha, dir string) (string, error) {
	id := sha
	for _, segment := range strings.Split(path.Clean(dir), "/") {
		tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, id, false)
		if err != nil {
			return "", r.unavailable(ctx, "reading "+dir, sha, err)
		}
		at := slices.IndexFunc(tree.Entries, func(e *gh.TreeEntry) bool { return e.GetPath() == segment })
		switch {
		case at < 0 && tree.GetTruncated():
			return "", truncated(dir)
		case at < 0:
			return "", nil
		case tree.Entries[at].GetType() != "tree":
			return "", notDirectory(dir)
		}
		id = tree.Entries[at].GetSHA()
	}
	return id, nil
}

// list returns all entries below a tree. GitHub cuts long recursive lists; those are walked directory by directory.
func (r *repository) list(ctx context.Context, what, id string) ([]*gh.TreeEntry, error) {
	tree, err := r.tree(ctx, what, id, true)
	if err != nil {
		return nil, err
	}
	if !tree.GetTruncated() {
		return tree.Entries, nil
	}
	type directory struct{ id, prefix string }
	var out []*gh.TreeEntry
	queue := []directory{{id: id}}
	for walked := 0; len(queue) > 0; walked++ {
		if walked == maxTrees {
			return nil, truncated(what)
		}
		d := queue[0]
		queue = queue[1:]
		tree, err := r.tree(ctx, what, d.id, false)
		if err != nil {
			return nil, err
		}
		if tree.GetTruncated() {
			return nil, truncated(what)
		}
		for _, e := range tree.Entries {
			full := d.prefix + e.GetPath()
			if e.GetType() == "tree" {
				queue = append(queue, directory{id: e.GetSHA(), prefix: full + "/"})
				continue
			}
			e.Path = &full
			out = append(out, e)
		}
	}
	return out, nil
}

func (r *repository) tree(ctx context.Context, what, id string, recursive bool) (*gh.Tree, error) {
	tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, id, recursive)
	if err != nil {
		return nil, r.unavailable(ctx, what, id, err)
	}
	return tree, nil
}

func truncated(what string) error {
	return fault.Operatorf("TreeTruncated", "%s: GitHub does not list all of it: make the directory smaller", what)
}

func checkSizes(dir string, entries []*gh.TreeEntry) error {
	if len(entries) > maxFiles {
		return fault.Invalidf("TooManyFiles", "%s holds %d YAML files: at most %d are read", dir, len(entries), maxFiles)
	}
	total := 0
	for _, e := range entries {
		if e.GetSize() > maxFile {
			return tooLarge(path.Join(dir, e.GetPath()), e.GetSize())
		}
		total += e.GetSize()
	}
	if total > maxTotal {
		return fault.Invalidf("FilesTooLarge", "the YAML files in %s have %d bytes: at most %d are read", dir, total, maxTotal)
	}
	return nil
}

// blobs reads the files, some at a time, and stops at the first error.
func (r *repository) blobs(ctx context.Context, dir string, entries []*gh.TreeEntry) ([]provider.File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]provider.File, len(entries))
	gate := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, e := range entries {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			if ctx.Err() != nil {
				return
			}
			name := path.Join(dir, e.GetPath())
			data, err := r.blob(ctx, name, e.GetSHA())
			if err != nil {
				// The first cause wins; later ones are its consequences.
				cancel(err)
				return
			}
			files[i] = provider.File{Path: name, Data: data}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, wrapf("reading "+dir, context.Cause(ctx))
	}
	return files, nil
}

func (r *repository) blob(ctx context.Context, name, id string) ([]byte, error) {
	data, _, err := r.client.Git.GetBlobRaw(ctx, r.owner, r.name, id)
	if provider.StatusCode(err) == http.StatusNotFound {
		// A tree that was just read names it: the answer comes from a replica that lags.
		return nil, fault.Transientf(fault.ReasonCommitUnknown, "GitHub does not show %s (yet)", name)
	}
	return data, failed(name, err)
}
