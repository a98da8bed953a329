// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"slices"
	"sync"

	"k8s.io/utils/lru"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

const (
	// maxTreeBytes is what is kept of definitions in memory, of all repositories: the files of some
	// thousand small ones.
	maxTreeBytes = 16 << 20
	// maxTreeObject is the bytes of an object that is kept: a larger one would cost many others
	// their place.
	maxTreeObject = 256 << 10
	// treeOverhead is about what an object takes besides its own bytes.
	treeOverhead = 300
)

// Definition is a file of a directory of definitions.
type Definition struct {
	// Path is below the repository's root, ID what Git calls the file's content.
	Path, ID string
}

// TreeID names a directory as Git does: by the digest of all that is below it, so that it never
// changes.
type TreeID struct {
	// Reader is who reads which repository, with which credentials: any comparable value. Nobody
	// else is given what was read.
	Reader any
	// ID is Git's, of the directory Dir.
	ID, Dir string
}

// Trees keeps the definitions that were read last, so that a directory that has not changed costs
// no call, and one that has only its changed files. That the commit may be read, and which
// directory it has, is asked each time. The zero value is ready.
type Trees struct {
	mu    sync.Mutex
	kept  *lru.Cache
	bytes int
}

// object is what is kept under a key: of a directory what it lists, of a file its content.
type object struct {
	files []Definition
	data  []byte
}

func (o object) size() int {
	size := treeOverhead + len(o.data)
	for _, f := range o.files {
		size += treeOverhead + len(f.Path) + len(f.ID)
	}
	return size
}

// Files returns the files of a directory. list and read are called for what is not kept.
func (t *Trees) Files(
	ctx context.Context,
	tree TreeID,
	list func() ([]Definition, error),
	read func(context.Context, Definition) ([]byte, error),
) ([]git.File, error) {
	found, ok := t.get(tree)
	if !ok {
		listed, err := list()
		if err != nil {
			return nil, err
		}
		if found = (object{files: listed}); len(listed) > 0 { // that there is none is asked again
			t.keep(tree, found)
		}
	}
	ids, names := map[string]string{}, make([]string, 0, len(found.files))
	for _, f := range found.files {
		ids[f.Path], names = f.ID, append(names, f.Path)
	}
	return ReadFiles(ctx, tree.Dir, names, func(ctx context.Context, name string) ([]byte, error) {
		return t.File(
			tree.Reader,
			ids[name],
			func() ([]byte, error) { return read(ctx, Definition{Path: name, ID: ids[name]}) },
		)
	})
}

// File returns a file by what Git calls its content. read is called for what is not kept. Whoever
// asks has just been shown the id by the service.
func (t *Trees) File(reader any, id string, read func() ([]byte, error)) ([]byte, error) {
	key := TreeID{Reader: reader, ID: id} // a file has no directory
	if blob, ok := t.get(key); ok {
		return blob.data, nil
	}
	data, err := read()
	if err == nil && IsBlob(id, data) {
		t.keep(key, object{data: slices.Clip(data)}) // whoever appends to it gets a copy
	}
	return data, err
}

func (t *Trees) get(key TreeID) (object, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		return object{}, false
	}
	found, ok := t.kept.Get(key)
	if !ok {
		return object{}, false
	}
	return found.(object), true //nolint:forcetypeassert // nothing else is kept
}

func (t *Trees) keep(key TreeID, o object) {
	if o.size() > maxTreeObject {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		// Without a bound of its own: it is the bytes that are bounded.
		t.kept = lru.NewWithEvictionFunc(
			0,
			func(_ lru.Key, o any) { t.bytes -= o.(object).size() },
		) //nolint:forcetypeassert // as above
	}
	if _, there := t.kept.Get(key); there {
		return
	}
	t.kept.Add(key, o)
	t.bytes += o.size()
	for t.bytes > maxTreeBytes {
		t.kept.RemoveOldest()
	}
}
