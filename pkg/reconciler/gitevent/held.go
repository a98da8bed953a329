// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// held knows which events of this process an operator has to help, and what the Secrets they were tried with held: when
// that changes, they are tried again at once instead of at their time (B8, E15). It is advice. A process that knows nothing
// of an event, because it has just begun to lead it, tries it once.
type held struct {
	mu     sync.Mutex
	events map[string]holding
	// latest is what was last read of each Secret that an event is held by.
	latest   map[types.NamespacedName]content
	refusals map[attempt]refusal
}

// holding is why an event is held.
type holding struct {
	// with is what it was tried with; empty if no Secret has a part in it.
	with map[types.NamespacedName]content
	// login is true when its credentials are what it is held by.
	login bool
	// again is true when something else changed that it may be held by.
	again bool
}

// content tells apart what a Secret held: a digest, or why there is none.
type content string

const (
	absent    content = "absent"
	forbidden content = "forbidden"
)

// attempt is what a Git service is asked with: what it refuses for one repository it may allow for another.
type attempt struct {
	secret     types.NamespacedName
	content    content
	repository types.NamespacedName
}

type refusal struct {
	fault *fault.Error
	until time.Time
}

// refusalBelieved is how long an attempt that was refused is not repeated for other events.
const refusalBelieved = 20 * time.Second

func newHeld() *held {
	return &held{events: map[string]holding{}, latest: map[types.NamespacedName]content{}, refusals: map[attempt]refusal{}}
}

// contentOf is the content that a read saw, false if the answer tells nothing of it. Metadata does not count: somebody may
// write it every minute.
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

// hold notes that an event was tried with what was seen and an operator has to help; login tells that its credentials are
// why. It returns true if the event is to be tried again at once: skipped tells that a step of it that waits for an
// operator was not tried, and what that one has waited for is another now. When none was skipped, what was seen is all that
// holds the event: a Secret that is named no more must not wake it at every look.
func (h *held) hold(event string, seen map[types.NamespacedName]content, login, skipped bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := holding{with: map[types.NamespacedName]content{}, login: login}
	if skipped {
		maps.Copy(known.with, h.events[event].with)
	}
	for name, now := range seen {
		before, held := known.with[name]
		known.again = known.again || skipped && held && before != now
		known.with[name], h.latest[name] = now, now
	}
	h.events[event] = known
	return known.again
}

// free forgets an event and, if it was held by its credentials, returns the others that are held by the same ones.
func (h *held) free(event string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	freed, known := h.events[event]
	delete(h.events, event)
	if !known || !freed.login {
		return nil
	}
	var others []string
	for other, holding := range h.events {
		shares := func(name types.NamespacedName) bool { _, by := holding.with[name]; return by }
		if holding.login && slices.ContainsFunc(slices.Collect(maps.Keys(freed.with)), shares) {
			others = append(others, other)
		}
	}
	return others
}

// retry lets an event be tried before its time.
func (h *held) retry(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.events[event]
	known.again = true
	h.events[event] = known
}

// mended tells whether a wait for an operator may be over before its time.
func (h *held) mended(event, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, found := h.events[event]
	if !found {
		return namesSecret(reason)
	}
	return known.again || h.changed(known)
}

// changed is called with the lock held.
func (h *held) changed(known holding) bool {
	for name, before := range known.with {
		if now, read := h.latest[name]; read && now != before {
			return true
		}
	}
	return false
}

// secrets returns those that events are held by, each once. Events that are not to be kept are forgotten.
func (h *held) secrets(keep func(event string) bool) []types.NamespacedName {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.events, func(event string, _ holding) bool { return !keep(event) })
	names := map[types.NamespacedName]bool{}
	for _, known := range h.events {
		for name := range known.with {
			names[name] = true
		}
	}
	maps.DeleteFunc(h.latest, func(name types.NamespacedName, _ content) bool { return !names[name] })
	return slices.Collect(maps.Keys(names))
}

// saw notes what a Secret holds now and returns the events that were tried with something else.
func (h *held) saw(name types.NamespacedName, now content) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest[name] = now
	var events []string
	for event, known := range h.events {
		if before, by := known.with[name]; by && before != now {
			events = append(events, event)
		}
	}
	return events
}

// refuse remembers for a while that the Git service refused an attempt.
func (h *held) refuse(a attempt, f *fault.Error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.refusals, func(_ attempt, r refusal) bool { return !now.Before(r.until) })
	h.refusals[a] = refusal{fault: f, until: now.Add(refusalBelieved)}
}

// refused returns why the Git service has just refused an attempt, nil if it has not.
func (h *held) refused(a attempt, now time.Time) *fault.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, found := h.refusals[a]; found && now.Before(r.until) {
		return r.fault
	}
	return nil
}

// namesSecret tells whether a wait with this reason ends when somebody changes a Secret.
func namesSecret(reason string) bool {
	switch reason {
	case fault.ReasonCredentialsMissing, fault.ReasonCredentialsInvalid, fault.ReasonCredentialsRefused, fault.ReasonSecretMissing:
		return true
	}
	return false
}
