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

func (k cached) size() int { return entryOverhead + len(k.data) }

// Put stores a version of an event that the API server has returned. asked is when it was
// requested.
func (k *Cache) Put(event *v1alpha1.GitEvent, asked time.Time) {
	if event.Settled() {
		k.put(event.Name, cached{settled: event.UID})
		return
	}
	k.put(event.Name, cached{data: encoded(event), confirmed: asked, exclusive: k.Exclusive(event.Name)})
}

// Appeared stores an event that was created while this process leads, as the watch shows it.
func (k *Cache) Appeared(event *v1alpha1.GitEvent) {
	k.put(event.Name, cached{data: encoded(event), exclusive: true})
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
func (k *Cache) put(name string, next cached) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(name)
	for other := range k.events {
		if k.bytes+next.size() <= maxBytes {
			break
		}
		k.forget(other)
	}
	if k.events == nil {
		k.events = map[string]cached{}
	}
	k.events[name] = next
	k.bytes += next.size()
}

// get returns a copy of the stored version of an event that the watch lists, nil if there is none.
func (k *Cache) get(listed *v1alpha1.GitEvent) (event *v1alpha1.GitEvent, found cached) {
	k.mu.Lock()
	found = k.events[listed.Name]
	k.mu.Unlock()
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
func (k *Cache) Exclusive(event string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.events[event].exclusive
}

// Forget removes an event that is settled or gone, or that may have changed.
func (k *Cache) Forget(event string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(event)
}

// Clear removes all events. It is called when this process starts or stops to lead: other processes
// write events then.
func (k *Cache) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events, k.bytes = nil, 0
}

func (k *Cache) forget(event string) {
	if before, found := k.events[event]; found {
		k.bytes -= before.size()
		delete(k.events, event)
	}
}
