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
	// maxTreeBytes is how many bytes of definitions are cached, of all repositories: the files of
	// some thousand small ones.
	maxTreeBytes = 16 << 20
	// maxTreeObject is the maximum size of a cached object in bytes. A larger one would evict many
	// others.
	maxTreeObject = 256 << 10
	// treeOverhead is about how many bytes an object takes in addition to its content.
	treeOverhead = 300
)

// Definition is a file of a directory of definitions.
type Definition struct {
	// Path is relative to the repository's root, ID is Git's id of the file's content.
	Path, ID string
}

// TreeID identifies a directory by Git's digest of everything below it, so the content of an id
// never changes.
type TreeID struct {
	// Reader identifies who reads which repository with which credentials: any comparable value.
	// What was read for one reader is never given to another.
	Reader any
	// ID is Git's id of the directory Dir.
	ID, Dir string
}

// Trees caches definitions. An unchanged directory costs no call, and a changed one only its
// changed files. Whether the commit may be read, and which directory it has, is read from the
// service each time. The zero value is ready.
type Trees struct {
	mu    sync.Mutex
	cache *lru.Cache // of objects by TreeID
	bytes int
}

// object is a cached value: the list of a directory, or the content of a file.
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

// Files returns the files of a directory. It calls list and read for what is not cached.
func (t *Trees) Files(
	ctx context.Context, tree TreeID, list func() ([]Definition, error),
	read func(context.Context, Definition) ([]byte, error),
) ([]git.File, error) {
	found, ok := t.get(tree)
	if !ok {
		listed, err := list()
		if err != nil {
			return nil, err
		}
		if found = (object{files: listed}); len(listed) > 0 { // an empty directory is not cached
			t.put(tree, found)
		}
	}
	ids, names := map[string]string{}, make([]string, 0, len(found.files))
	for _, f := range found.files {
		ids[f.Path], names = f.ID, append(names, f.Path)
	}
	return ReadFiles(ctx, tree.Dir, names, func(ctx context.Context, name string) ([]byte, error) {
		return t.File(tree.Reader, ids[name],
			func() ([]byte, error) { return read(ctx, Definition{Path: name, ID: ids[name]}) })
	})
}

// File returns a file by Git's id of its content. It calls read if that is not cached. The service
// has just shown the id to the caller.
func (t *Trees) File(reader any, id string, read func() ([]byte, error)) ([]byte, error) {
	key := TreeID{Reader: reader, ID: id} // a file has no directory
	if blob, ok := t.get(key); ok {
		return blob.data, nil
	}
	data, err := read()
	if err == nil && IsBlob(id, data) {
		t.put(key, object{data: slices.Clip(data)}) // a caller that appends to it gets a copy
	}
	return data, err
}

func (t *Trees) get(key TreeID) (object, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache == nil {
		return object{}, false
	}
	found, ok := t.cache.Get(key)
	if !ok {
		return object{}, false
	}
	return found.(object), true
}

func (t *Trees) put(key TreeID, o object) {
	if o.size() > maxTreeObject {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache == nil {
		// It has no limit of entries: the bytes are limited.
		t.cache = lru.NewWithEvictionFunc(0, func(_ lru.Key, o any) { t.bytes -= o.(object).size() })
	}
	if _, there := t.cache.Get(key); there {
		return
	}
	t.cache.Add(key, o)
	t.bytes += o.size()
	for t.bytes > maxTreeBytes {
		t.cache.RemoveOldest()
	}
}
