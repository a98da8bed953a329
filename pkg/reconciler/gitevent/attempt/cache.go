// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxKnown bounds what Known keeps, in bytes of JSON: some 3,000 events with a few runs each. An
// event that is forgotten costs one read when it is next worked on.
const maxBytes = 16 << 20

// Known keeps the open events that this process works on, whole, while its watch keeps little of
// each: as the process has written or read them last, or as the watch has shown a new one. So most
// reconciles read nothing. It is advice: whoever writes a version that is not the newest meets a
// conflict, and is made to forget it. See docs/adr/0024. The zero value knows nothing. Safe for
// concurrent use.
type Cache struct {
	mu     sync.Mutex
	events map[string]cached
	bytes  int
}

type cached struct {
	data      []byte    // the object in JSON: nobody can change it, and it has a size
	confirmed time.Time // the API server has confirmed later than this that it is the newest version; zero if a watch has told of it
	exclusive bool      // nobody else has worked on it since it was made
	settled   types.UID // of an event that is over, and that the watch may still show: there is nothing else to know of it
}

// entry is about what an event takes beside its JSON.
const entryOverhead = 200

func (k cached) size() int { return entryOverhead + len(k.data) }

// Note keeps a version of an event that the API server has returned, asked for at that time.
func (k *Cache) Put(event *v1alpha1.GitEvent, asked time.Time) {
	if event.Settled() {
		k.put(event.Name, cached{settled: event.UID})
		return
	}
	k.put(event.Name, cached{data: encoded(event), confirmed: asked, exclusive: k.Exclusive(event.Name)})
}

// Appeared keeps an event that was made while this process leads, as its watch shows it.
func (k *Cache) Appeared(event *v1alpha1.GitEvent) {
	k.put(event.Name, cached{data: encoded(event), exclusive: true})
}

// encoded leaves out who owns which field, which the API server keeps, and the body of an event of
// which nothing is to be planned: it is most of it, and not read any more.
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

// put forgets others when there is no room.
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

// get returns what is known of an event that the watch lists, and a copy of it; nil if that is not
// known.
func (k *Cache) get(listed *v1alpha1.GitEvent) (event *v1alpha1.GitEvent, found cached) {
	k.mu.Lock()
	found = k.events[listed.Name]
	k.mu.Unlock()
	if found.data == nil {
		return nil, found
	}
	event = &v1alpha1.GitEvent{}
	if err := json.Unmarshal(found.data, event); err != nil || event.UID != listed.UID || !event.Knows(listed) {
		return nil, cached{} // one that was deleted and recorded again is another; and another event may have cancelled this one
	}
	return event, found
}

// First reports whether this process has seen the event appear while it led, and nothing since that
// another one may have done.
func (k *Cache) Exclusive(event string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.events[event].exclusive
}

// Forget is called when the event is settled or gone, and when it may have changed.
func (k *Cache) Forget(event string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(event)
}

// Clear is called when this process begins or ends to lead: other processes write events then.
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
