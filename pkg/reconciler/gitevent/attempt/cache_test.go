// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func named(name, uid string) *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func TestCacheStoresTheNewestVersion(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := &Cache{}
	k.Appeared(named("a", "1"))
	if event, found := k.get(named("a", "1")); event == nil || !found.confirmed.IsZero() || !k.Exclusive("a") {
		t.Errorf("what appeared is %v, first %t: want it, and not confirmed", event, k.Exclusive("a"))
	}
	k.Put(named("a", "1"), now)
	event, found := k.get(named("a", "1"))
	if event == nil || !found.confirmed.Equal(now) || !k.Exclusive("a") {
		t.Errorf("what was written is %v, first %t: want it, confirmed", event, k.Exclusive("a"))
	}
	event.Spec.SHA = "changed"
	if event, _ := k.get(named("a", "1")); event.Spec.SHA != "" {
		t.Error("a reconcile has changed what is known")
	}
	if event, _ := k.get(named("a", "2")); event != nil {
		t.Error("an event that was deleted and recorded again is taken for the one before")
	}
	k.Forget("a")
	k.Put(named("a", "1"), now)
	if k.Exclusive("a") {
		t.Error("another process may have worked on what was forgotten")
	}
	over := named("a", "1")
	over.Status.Phase = v1alpha1.PhaseSettled
	k.Put(over, now)
	if event, found := k.get(named("a", "1")); event != nil || found.settled != "1" {
		t.Errorf("of a settled event is known %v", found)
	}
	if k.Clear(); k.bytes != 0 {
		t.Errorf("%d bytes of nothing", k.bytes)
	}
}

// However many and large events are, they take so much memory and no more; the last one is always
// there.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	k := &Cache{}
	for i := range 100 {
		event := named(fmt.Sprint(i), "1")
		event.Spec.SHA = strings.Repeat("x", 1<<20)
		k.Put(event, time.Now())
		if known, _ := k.get(event); known == nil || k.bytes > maxBytes {
			t.Fatalf("event %d is known: %t, %d bytes", i, known != nil, k.bytes)
		}
	}
	if n := len(k.events); n < 14 || n > 16 {
		t.Errorf("%d events of a MiB are known", n)
	}
}

// Events that are planned, which are nearly all that are open, take no room for the bodies of their
// deliveries: 4,000 of 10 KiB are known.
func TestCacheLeavesOutTheBodyOfAPlannedEvent(t *testing.T) {
	t.Parallel()
	k := &Cache{}
	for i := range 4000 {
		event := named(fmt.Sprint(i), "1")
		event.Payload = make([]byte, 10<<10)
		event.Status.Plan = &v1alpha1.Plan{HeadSHA: "abc"}
		if k.Put(event, time.Now()); event.Payload == nil {
			t.Fatal("the reconcile's own event is changed")
		}
	}
	if n := len(k.events); n != 4000 {
		t.Errorf("%d of 4,000 events are known", n)
	}
	open := named("open", "1")
	open.Payload = []byte("body")
	k.Put(open, time.Now())
	if event, _ := k.get(open); string(event.Payload) != "body" {
		t.Error("the body of an event that is still to be planned is read again")
	}
}
