// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxBytes bounds the cache, in bytes of JSON: some 3,000 events with a few runs each. An event
// that is evicted costs one read when it is next reconciled.
const maxBytes = 16 << 20

// Cache keeps whole the unsettled events that this process works on; the informer keeps little of
// each. It has the version that the process has read or written last, or a new event as the watch
// showed it. So most reconciles read nothing. It is only a hint: a process that writes an old
// version gets a conflict and removes the event from its cache. See docs/adr/0024. The zero value
// is empty. Safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	events map[string]cached
	bytes  int
}

type cached struct {
	data []byte // the object in JSON: it cannot be changed, and has a size
	// confirmed is a time after which the API server has confirmed that this is the newest version.
	// It is zero if the object comes from a watch.
	confirmed time.Time
	exclusive bool      // no other process has worked on it since it was created
	settled   types.UID // the UID of a settled event, which the watch may still show; nothing else is kept of it
}

// entryOverhead is about what an event takes in addition to its JSON.
const entryOverhead = 200

func (c cached) size() int { return entryOverhead + len(c.data) }

// Put stores a version of an event that the API server has returned. asked is when it was
// requested.
func (c *Cache) Put(event *v1alpha1.GitEvent, asked time.Time) {
	if event.Settled() {
		c.put(event.Name, cached{settled: event.UID})
		return
	}
	c.put(event.Name, cached{data: encoded(event), confirmed: asked, exclusive: c.Exclusive(event.Name)})
}

// Appeared stores an event that was created while this process leads, as the watch shows it.
func (c *Cache) Appeared(event *v1alpha1.GitEvent) {
	c.put(event.Name, cached{data: encoded(event), exclusive: true})
}

// encoded leaves out the managed fields, which the API server keeps. Of an event that is planned it
// leaves out the delivery's body: that is most of it, and is not read any more.
func encoded(whole *v1alpha1.GitEvent) []byte {
	event := *whole
	event.ManagedFields = nil
	if event.Status.Plan.Decided() {
		event.Payload = nil
	}
	data, err := json.Marshal(&event)
	if err != nil {
		return nil // a GitEvent always marshals
	}
	return data
}

// put evicts other events if there is no room.
func (c *Cache) put(name string, next cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(name)
	for other := range c.events {
		if c.bytes+next.size() <= maxBytes {
			break
		}
		c.forget(other)
	}
	if c.events == nil {
		c.events = map[string]cached{}
	}
	c.events[name] = next
	c.bytes += next.size()
}

// get returns a copy of the stored version of an event that the watch lists, nil if there is none.
func (c *Cache) get(listed *v1alpha1.GitEvent) (event *v1alpha1.GitEvent, found cached) {
	c.mu.Lock()
	found = c.events[listed.Name]
	c.mu.Unlock()
	if found.data == nil {
		return nil, found
	}
	event = &v1alpha1.GitEvent{}
	if err := json.Unmarshal(found.data, event); err != nil || event.UID != listed.UID || !event.Knows(listed) {
		return nil, cached{} // the event was recreated, or another event has cancelled it
	}
	return event, found
}

// Exclusive reports whether this process has seen the event appear while it led, and no other
// process may have worked on it since.
func (c *Cache) Exclusive(event string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[event].exclusive
}

// Forget removes an event that is settled or gone, or that may have changed.
func (c *Cache) Forget(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(event)
}

// Clear removes all events. It is called when this process starts or stops to lead: other processes
// write events then.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events, c.bytes = nil, 0
}

func (c *Cache) forget(event string) {
	if before, found := c.events[event]; found {
		c.bytes -= before.size()
		delete(c.events, event)
	}
}
