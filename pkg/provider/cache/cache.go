// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a bounded number of values in memory that can be made anew at any time.
package cache

import "sync"

// Cache holds at most a number of values and drops the one that was used longest ago. Safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	size    int
	tick    uint64
	entries map[K]*entry[V]
}

type entry[V any] struct {
	value V
	used  uint64
}

// New returns an empty Cache for size values.
func New[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{size: size, entries: map[K]*entry[V]{}}
}

// Get returns the key's value, made if it is not there. create must not call the Cache.
func (c *Cache[K, V]) Get(key K, create func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tick++
	if e := c.entries[key]; e != nil {
		e.used = c.tick
		return e.value
	}
	if len(c.entries) >= c.size {
		c.evict()
	}
	e := &entry[V]{value: create(), used: c.tick}
	c.entries[key] = e
	return e.value
}

func (c *Cache[K, V]) evict() {
	oldest, found := *new(K), false
	for k, e := range c.entries {
		if !found || e.used < c.entries[oldest].used {
			oldest, found = k, true
		}
	}
	delete(c.entries, oldest)
}
