// SPDX-License-Identifier: Apache-2.0

// Package recent stores a bounded number of values in memory and evicts the one that was not used
// for the longest time. It is for values that can be computed or requested again.
package recent

import (
	"cmp"
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/util/cache"
)

// DefaultMax is how many values a Map stores unless its Max is set.
const DefaultMax = 10_000

// Map is a map with at most Max entries. The zero value is ready. Safe for concurrent use.
type Map[K comparable, V any] struct {
	// Max is the most entries, 0 for DefaultMax. Set it before the Map is used.
	Max int

	mu      sync.Mutex // makes Update atomic
	entries *cache.LRUExpireCache
}

// Get returns the key's value, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(key)
}

// Put stores a value.
func (m *Map[K, V]) Put(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// GetOrCreate returns the key's value. If there is none, it stores and returns what create returns.
func (m *Map[K, V]) GetOrCreate(key K, create func() V) V {
	return m.Update(key, func(value V, found bool) (V, bool) {
		if !found {
			value = create()
		}
		return value, true
	})
}

// Update stores the value that change returns for the key's value, and returns it. If keep is
// false, it deletes the key. Other calls wait meanwhile; change must not call the Map.
func (m *Map[K, V]) Update(key K, change func(value V, found bool) (next V, keep bool)) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = cache.NewLRUExpireCache(cmp.Or(m.Max, DefaultMax))
	}
	next, keep := change(m.get(key))
	if keep {
		m.entries.Add(key, next, math.MaxInt64) // values do not expire
	} else {
		m.entries.Remove(key)
	}
	return next
}

// Delete deletes the key's value.
func (m *Map[K, V]) Delete(key K) {
	m.Update(key, func(value V, _ bool) (V, bool) { return value, false })
}

// DeleteFunc deletes the values of all keys for which del returns true.
func (m *Map[K, V]) DeleteFunc(del func(K) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries != nil {
		m.entries.RemoveAll(func(key any) bool { return del(key.(K)) })
	}
}

func (m *Map[K, V]) get(key K) (value V, found bool) {
	if m.entries == nil {
		return value, false
	}
	stored, found := m.entries.Get(key)
	value, _ = stored.(V)
	return value, found
}
