// SPDX-License-Identifier: Apache-2.0

package github

import "sync"

// cache holds at most size values and drops the one that was used longest ago.
type cache[K comparable, V any] struct {
	mu      sync.Mutex
	size    int
	tick    uint64
	entries map[K]*entry[V]
}

type entry[V any] struct {
	value V
	used  uint64
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, entries: map[K]*entry[V]{}}
}

// get returns the key's value, made if it is not there.
func (c *cache[K, V]) get(key K, create func() V) V {
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

func (c *cache[K, V]) evict() {
	oldest, found := *new(K), false
	for k, e := range c.entries {
		if !found || e.used < c.entries[oldest].used {
			oldest, found = k, true
		}
	}
	delete(c.entries, oldest)
}
