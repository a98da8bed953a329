// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// maxTrees is how many directories are read one by one when GitHub truncates the recursive list.
const maxTrees = 1000

// Files returns the YAML files below dir at sha, sorted by path, with their content unchanged.
func (r *repository) Files(ctx context.Context, sha, dir string) ([]git.File, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	tree, err := r.subtree(ctx, sha, dir)
	if err != nil || tree == "" {
		return nil, err
	}
	id := provider.TreeID{Reader: r.reader, ID: tree, Dir: dir}
	return r.trees.Files(ctx, id, func() ([]provider.Definition, error) { return r.definitions(ctx, id) }, r.blob)
}

// definitions lists the YAML files below a tree.
func (r *repository) definitions(ctx context.Context, tree provider.TreeID) ([]provider.Definition, error) {
	dir := tree.Dir
	entries, err := r.list(ctx, "reading "+dir, tree.ID)
	if err != nil {
		return nil, err
	}
	var found []provider.Definition
	total := 0
	for _, e := range entries {
		name := path.Join(dir, e.GetPath())
		if e.GetType() != "blob" || e.GetMode() == provider.ModeLink || !provider.IsDefinition(name) {
			continue
		}
		if e.GetSize() > provider.MaxFile {
			return nil, provider.TooLarge(name, e.GetSize())
		}
		total += e.GetSize()
		found = append(found, provider.Definition{Path: name, ID: e.GetSHA()})
	}
	return found, provider.CheckTotal(dir, total)
}

// subtree returns the id of the tree at dir, empty if there is none.
func (r *repository) subtree(ctx context.Context, sha, dir string) (string, error) {
	found, err := r.entry(ctx, sha, path.Clean(dir))
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", nil
	case found.GetType() != "tree":
		return "", provider.NotDirectory(dir, found.GetMode())
	}
	return found.GetSHA(), nil
}

// entry returns the entry at a path of the commit, nil if there is none. One read is certain: a
// tree's id is a digest of its entries, so a stale replica has all of it or nothing.
func (r *repository) entry(ctx context.Context, sha, name string) (*gh.TreeEntry, error) {
	segments := strings.Split(name, "/")
	for i, id := 0, sha; ; i++ {
		tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, id, false)
		if err != nil {
			return nil, r.unavailable(ctx, "reading "+name, sha, err)
		}
		if !isTree(tree) || i > 0 && tree.GetSHA() != id {
			return nil, noAnswer("reading " + name)
		}
		at := slices.IndexFunc(tree.Entries, func(e *gh.TreeEntry) bool { return e.GetPath() == segments[i] })
		switch {
		case at < 0 && tree.GetTruncated():
			return nil, truncated(name)
		case at < 0:
			return nil, nil
		case i == len(segments)-1:
			return tree.Entries[at], nil
		case tree.Entries[at].GetType() != "tree":
			return nil, nil
		}
		id = tree.Entries[at].GetSHA()
	}
}

// list returns all entries below a tree. GitHub truncates long recursive lists; then it reads
// directory by directory.
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

// RootFiles reads files of the default branch. Only the root tree is read by a name that moves,
// HEAD. Everything else is read by its digest, so all files are of the same commit.
func (r *repository) RootFiles(ctx context.Context, names ...string) (map[string][]byte, error) {
	entries, sizes, err := r.root(ctx, "reading the root directory of the default branch", "HEAD")
	if err != nil {
		return nil, err
	}
	return provider.RootFiles(entries, names, func(e provider.Entry) ([]byte, error) {
		if sizes[e.ID] > provider.MaxFile {
			return nil, provider.TooLarge(e.Name, sizes[e.ID])
		}
		return r.trees.File(r.reader, e.ID,
			func() ([]byte, error) { return r.blob(ctx, provider.Definition{Path: e.Name, ID: e.ID}) })
	})
}

// Differ implements provider.History.
func (r *repository) Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error) {
	return provider.Differ(earlier, later, names, func(sha string) ([]provider.Entry, error) {
		entries, _, err := r.root(ctx, "reading the root directory of commit "+sha, sha)
		return entries, err
	})
}

// root lists the root directory of a commit, and the sizes of its files by id.
func (r *repository) root(
	ctx context.Context, what, sha string,
) (entries []provider.Entry, sizes map[string]int, err error) {
	tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, sha, false)
	switch {
	case err != nil:
		return nil, nil, r.unavailable(ctx, what, sha, err)
	case !isTree(tree):
		return nil, nil, noAnswer(what)
	case tree.GetTruncated():
		return nil, nil, truncated(what)
	}
	sizes = map[string]int{}
	for _, e := range tree.Entries {
		sizes[e.GetSHA()] = e.GetSize()
		entries = append(entries, provider.Entry{Name: e.GetPath(), Type: e.GetType(), Mode: e.GetMode(), ID: e.GetSHA()})
	}
	return entries, sizes, nil
}

func (r *repository) tree(ctx context.Context, what, id string, recursive bool) (*gh.Tree, error) {
	tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, id, recursive)
	if err != nil {
		return nil, r.unavailable(ctx, what, id, err)
	}
	if !isTree(tree) || tree.GetSHA() != id {
		return nil, noAnswer(what)
	}
	return tree, nil
}

// isTree reports whether an answer lists a directory. Any other JSON object would be decoded as a
// directory without files.
func isTree(tree *gh.Tree) bool {
	return provider.IsSHA(tree.GetSHA()) && tree.Entries != nil &&
		!slices.ContainsFunc(tree.Entries, func(e *gh.TreeEntry) bool {
			return e.GetPath() == "" || e.GetType() == "" || !provider.IsSHA(e.GetSHA())
		})
}

func truncated(what string) error {
	return fault.Operatorf(provider.ReasonTreeTruncated, "%s: GitHub does not list all of it: make the directory smaller",
		what)
}

func (r *repository) blob(ctx context.Context, file provider.Definition) ([]byte, error) {
	name, id := file.Path, file.ID
	data, _, err := r.client.Git.GetBlobRaw(ctx, r.owner, r.name, id)
	if provider.StatusCode(err) == http.StatusNotFound {
		// A tree that was just read has it, so the answer comes from a stale replica.
		return nil, fault.Transientf(fault.ReasonCommitUnknown, "GitHub does not show %s (yet)", name)
	}
	if err == nil && !provider.IsBlob(id, data) {
		return nil, fault.Transientf(provider.ReasonBadAnswer,
			"reading %s: what GitHub answers is not this file (a proxy's page, or a part of it)", name)
	}
	return data, limits.Failed("reading "+name, err)
}
