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

// waiting knows which events of this process an operator has to help, and what the Secrets they
// were tried with held: when that changes, they are tried again at once instead of at their time
// (B8, E15).
type waiting struct {
	mu     sync.Mutex
	events map[string]trial
	// latest is what was last read of each Secret that an event waits because of.
	latest map[types.NamespacedName]content
}

// trial is how an event was tried last, and why that is to be repeated before its time.
type trial struct {
	// with is what it was tried with; empty if no Secret has a part in it.
	with map[types.NamespacedName]content
	// login is true when it waits because of its credentials.
	login bool
	// again is true when something else changed that it may wait for.
	again bool
}

// content tells apart what a Secret held: a digest, or why there is none.
type content string

const (
	absent    content = "absent"
	forbidden content = "forbidden"
)

func newWaiting() *waiting {
	return &waiting{events: map[string]trial{}, latest: map[types.NamespacedName]content{}}
}

// contentOf is the content that a read saw, false if the answer tells nothing of it. Metadata does
// not count: somebody may write it every minute.
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

// add notes that an event was tried with what was seen and an operator has to help; login tells
// that its credentials are why. It returns true if the event is to be tried again at once: skipped
// tells that a step of it that waits for an operator was not tried, and what that one has waited
// for is another now. When none was skipped, what was seen is all that the event waits because of:
// a Secret that is named no more must not wake it at every look.
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

// remove forgets an event and, if it waited because of its credentials, returns the others that
// wait because of the same.
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

// retry lets an event be tried before its time.
func (w *waiting) retry(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.events[event]
	known.again = true
	w.events[event] = known
}

// mended reports whether a wait for an operator may be over before its time.
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

// secrets returns those that events wait because of, each once. Events that are not to be kept are
// forgotten.
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

// saw notes what a Secret holds now and returns the events that were tried with something else.
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
