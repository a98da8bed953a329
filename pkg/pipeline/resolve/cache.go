// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

const (
	// maxKept limits the bytes in a Cache, and maxOwned the bytes of one owner: .tekton with some
	// 100 PipelineRuns of 300 values each. Larger directories are parsed for each event.
	maxKept  = 32 << 20
	maxOwned = maxKept / 4
	// nodeBytes is the memory of a parsed value, and definitionBytes that of a Definition.
	nodeBytes       = 180
	definitionBytes = 1 << 10
)

// Cache stores parsed .tekton directories: for most events the directory has not changed since the
// last event, and parsing is half of the work of planning. The key is the owner with a digest of
// all paths and contents, so that a hit equals what Load would return. The zero value is ready to
// use and safe for concurrent use; a nil Cache stores nothing.
//
// An owner, such as a namespace, has at most a quarter of the cache. When the cache is full, an
// entry of the owner with the most is evicted.
type Cache struct {
	mu    sync.Mutex
	owned map[string]*share
	total int
}

// share has the entries of one owner.
type share struct {
	sets  []keptSet // the one that was used last comes first
	bytes int
}

type keptSet struct {
	key   [sha256.Size]byte
	set   *Set
	bytes int
}

// Load does what the function Load does, and caches the result for an owner.
func (c *Cache) Load(owner string, files []git.File) *Set {
	if c == nil {
		return Load(files)
	}
	key := digest(files)
	if set := c.find(owner, key); set != nil {
		return set
	}
	set := Load(files)
	if bytes := set.bytes(); bytes <= maxOwned {
		c.keep(owner, keptSet{key, set, bytes})
	}
	return set
}

func (c *Cache) find(owner string, key [sha256.Size]byte) *Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.owned[owner]
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.sets, func(k keptSet) bool { return k.key == key })
	if i < 0 {
		return nil
	}
	found := s.sets[i]
	s.sets = slices.Insert(slices.Delete(s.sets, i, i+1), 0, found)
	return found.set
}

func (c *Cache) keep(owner string, k keptSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned == nil {
		c.owned = map[string]*share{}
	}
	s := c.owned[owner]
	if s == nil {
		s = &share{}
		c.owned[owner] = s
	}
	if slices.ContainsFunc(s.sets, func(other keptSet) bool { return other.key == k.key }) {
		return // another event of the same commit was faster
	}
	s.sets = slices.Insert(s.sets, 0, k)
	s.bytes, c.total = s.bytes+k.bytes, c.total+k.bytes
	for s.bytes > maxOwned {
		c.drop(owner)
	}
	for c.total > maxKept {
		c.drop(c.largest())
	}
}

// largest returns the owner with the most bytes.
func (c *Cache) largest() (owner string) {
	most := 0
	for name, s := range c.owned {
		if s.bytes > most {
			owner, most = name, s.bytes
		}
	}
	return owner
}

// drop evicts the entry that an owner has not used for the longest time.
func (c *Cache) drop(owner string) {
	s := c.owned[owner]
	last := len(s.sets) - 1
	s.bytes, c.total = s.bytes-s.sets[last].bytes, c.total-s.sets[last].bytes
	s.sets = slices.Delete(s.sets, last, last+1)
	if last == 0 {
		delete(c.owned, owner)
	}
}

// digest identifies files by their paths and contents.
func digest(files []git.File) (key [sha256.Size]byte) {
	sum := sha256.New()
	for _, file := range files {
		for _, part := range [][]byte{[]byte(file.Path), file.Data} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			sum.Write(length[:])
			sum.Write(part)
		}
	}
	sum.Sum(key[:0])
	return key
}

// bytes estimates the memory of the set.
func (s *Set) bytes() int {
	return nodeBytes*s.spent.nodes + s.spent.text + s.source + definitionBytes*(len(s.definitions)+1)
}
