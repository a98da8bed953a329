// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// waiting stores which events wait for an administrator, and the contents of the Secrets that they
// were tried with. When one changes, the events are retried early (B8, E15).
type waiting struct {
	mu     sync.Mutex
	events map[string]trial
	// latest is the content of each of these Secrets as it was last read.
	latest map[types.NamespacedName]content
}

// trial is how an event was tried last, and whether it is to be retried early.
type trial struct {
	// with has the Secrets that it was tried with; empty if it needed none.
	with map[types.NamespacedName]content
	// login says that it waits because of its credentials.
	login bool
	// again says that something else has changed for which it may wait.
	again bool
}

// content identifies the content of a Secret: a digest, or why there is none.
type content string

const (
	absent    content = "absent"
	forbidden content = "forbidden"
)

func newWaiting() *waiting {
	return &waiting{events: map[string]trial{}, latest: map[types.NamespacedName]content{}}
}

// contentOf returns the content that was read, false after an error that says nothing about it.
// Metadata does not count, because it may be written every minute.
func contentOf(secret *corev1.Secret, err error) (content, bool) {
	switch {
	case apierrors.IsNotFound(err):
		return absent, true
	case apierrors.IsForbidden(err):
		return forbidden, true
	case err != nil:
		return "", false
	}
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		for _, part := range [][]byte{[]byte(key), secret.Data[key]} {
			_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash never fails to write
			sum.Write(part)
		}
	}
	return content(sum.Sum(nil)), true
}

// add stores that an event was tried with the Secrets in seen and waits for an administrator; login
// says that this is because of its credentials. skipped says that a step that waits for an
// administrator was not tried. Then the Secrets of that step count as well, and add returns true if
// one of them has changed, so that the event is retried at once. Otherwise only those in seen
// count: a Secret that is no longer named must not wake the event at every poll.
func (w *waiting) add(event string, seen map[types.NamespacedName]content, login, skipped bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := trial{with: map[types.NamespacedName]content{}, login: login}
	if skipped {
		maps.Copy(known.with, w.events[event].with)
	}
	for name, now := range seen {
		before, tried := known.with[name]
		known.again = known.again || skipped && tried && before != now
		known.with[name], w.latest[name] = now, now
	}
	w.events[event] = known
	return known.again
}

// remove forgets an event. If it waited because of its credentials, remove returns the events that
// wait because of the same ones.
func (w *waiting) remove(event string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed, known := w.events[event]
	delete(w.events, event)
	if !known || !removed.login {
		return nil
	}
	var others []string
	for other, last := range w.events {
		shares := func(name types.NamespacedName) bool { _, with := last.with[name]; return with }
		if last.login && slices.ContainsFunc(slices.Collect(maps.Keys(removed.with)), shares) {
			others = append(others, other)
		}
	}
	return others
}

// retry lets an event be retried early.
func (w *waiting) retry(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.events[event]
	known.again = true
	w.events[event] = known
}

// fixed reports whether a wait for an administrator may be over early.
func (w *waiting) fixed(event, reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, found := w.events[event]
	if !found {
		return NamesSecret(reason)
	}
	return known.again || w.changed(known)
}

// changed is called with the lock held.
func (w *waiting) changed(known trial) bool {
	for name, before := range known.with {
		if now, read := w.latest[name]; read && now != before {
			return true
		}
	}
	return false
}

// secrets returns the Secrets because of which events wait, each once. It forgets events for which
// keep returns false.
func (w *waiting) secrets(keep func(event string) bool) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.events, func(event string, _ trial) bool { return !keep(event) })
	names := map[types.NamespacedName]bool{}
	for _, known := range w.events {
		for name := range known.with {
			names[name] = true
		}
	}
	maps.DeleteFunc(w.latest, func(name types.NamespacedName, _ content) bool { return !names[name] })
	return slices.Collect(maps.Keys(names))
}

// saw stores the content of a Secret and returns the events that were tried with another one.
func (w *waiting) saw(name types.NamespacedName, now content) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest[name] = now
	var events []string
	for event, known := range w.events {
		if before, with := known.with[name]; with && before != now {
			events = append(events, event)
		}
	}
	return events
}

func (w *waiting) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}
