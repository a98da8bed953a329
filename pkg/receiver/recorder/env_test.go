// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

const (
	systemNamespace = "plumbline"
	day             = 24 * time.Hour
	// retention is how long the record of a delivery is kept.
	retention = 4 * day
)

// env is an API server, and what the recorders of several replicas share.
type env struct {
	t      *testing.T
	client *plumblinefake.Clientset
	clock  *clocktesting.FakePassiveClock
	ahead  time.Duration // of the API server's clock
	limits quota.Limits
	quota  *quota.Ledger
}

func newEnv(t *testing.T) *env {
	e := &env{
		t: t, client: plumblinefake.NewSimpleClientset(), limits: quota.Limits{Events: 1000, Bytes: 1 << 30},
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
	}
	e.quota = quota.New(func() quota.Limits { return e.limits }, e.clock, nil)
	e.client.PrependReactor("create", "gitevents", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.GitEvent)
		event.CreationTimestamp = metav1.NewTime(e.clock.Now().Add(e.ahead).Truncate(time.Second))
		return false, nil, nil
	})
	return e
}

// recorder returns the recorder of one more replica.
func (e *env) recorder() *recorder.Recorder {
	client := e.client.PlumblineV1alpha1()
	return &recorder.Recorder{
		Namespace: systemNamespace, Clock: e.clock, Quota: e.quota, Retention: func() time.Duration { return retention },
		Events: client.GitEvents(systemNamespace), Payloads: client.EventPayloads(systemNamespace),
		Tombstones: client.TombstonePages(systemNamespace),
	}
}

// delivery is what is recorded.
type delivery struct {
	spec *v1alpha1.GitEventSpec
	body []byte
}

// push is a push whose body does not identify its event.
func push(key string) delivery {
	return delivery{
		&v1alpha1.GitEventSpec{
			Provider: "test", Host: "git.example", DeliveryKey: key, Trigger: v1alpha1.TriggerPush, EventType: "push",
			SHA: strings.Repeat("0", 40), Repository: v1alpha1.RepositoryReference{Namespace: "ci", Name: "app"},
		},
		[]byte("the body of a push"),
	}
}

// pushAt is a push whose body identifies its event, and says when it happened.
func pushAt(key string, at time.Time) delivery { return push(key).at(at) }

func (d delivery) at(at time.Time) delivery {
	d.body = append(d.body, at.String()...)
	key := strings.TrimPrefix(blob.Digest(d.body), "sha256:")
	d.spec.Body = &v1alpha1.BodyIdentity{Key: key, At: metav1.NewTime(at.Truncate(time.Second))}
	return d
}

// large is a push whose body does not fit into its event.
func large(key string) delivery { return noise(key, 50_000) }

// noise is a push with a body of so many bytes in base64, which are different for each key and
// cannot be compressed.
func noise(key string, bytes int) delivery {
	d, random := push(key), make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte([]byte((strings.Repeat(" ", 32) + key)[len(key):]))).Read(random) // never fails
	d.body = []byte(base64.StdEncoding.EncodeToString(random))
	return d
}

// record has another replica record a delivery, which must succeed.
func (e *env) record(d delivery) (name string, created bool) {
	e.t.Helper()
	return e.recordBy(e.recorder(), d)
}

func (e *env) recordBy(r *recorder.Recorder, d delivery) (name string, created bool) {
	e.t.Helper()
	name, created, err := r.Record(e.t.Context(), d.spec, d.body)
	if err != nil {
		e.t.Fatalf("recording delivery %s: %v", d.spec.DeliveryKey, err)
	}
	return name, created
}

// refuse has another replica record a delivery, which must fail.
func (e *env) refuse(d delivery) *fault.Error {
	e.t.Helper()
	return e.refuseBy(e.recorder(), d)
}

func (e *env) refuseBy(r *recorder.Recorder, d delivery) *fault.Error {
	e.t.Helper()
	name, _, err := r.Record(e.t.Context(), d.spec, d.body)
	if err == nil {
		e.t.Fatalf("delivery %s is recorded as %s, want an error", d.spec.DeliveryKey, name)
	}
	return fault.Of(err)
}

// pass lets time pass.
func (e *env) pass(d time.Duration) { e.clock.SetTime(e.clock.Now().Add(d)) }

func (e *env) events() []v1alpha1.GitEvent {
	e.t.Helper()
	list, err := e.client.PlumblineV1alpha1().GitEvents(systemNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return list.Items
}

func (e *env) wantEvents(n int) []v1alpha1.GitEvent {
	e.t.Helper()
	events := e.events()
	if len(events) != n {
		e.t.Fatalf("%d GitEvents, want %d", len(events), n)
	}
	return events
}

func (e *env) payloads() []v1alpha1.EventPayload {
	e.t.Helper()
	list, err := e.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(context.Background(),
		metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return list.Items
}

func (e *env) deletePayload(name string) {
	e.t.Helper()
	if err := e.client.PlumblineV1alpha1().EventPayloads(systemNamespace).Delete(e.t.Context(), name,
		metav1.DeleteOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// wantPayload reads the payload of an event.
func (e *env) wantPayload(event v1alpha1.GitEvent) {
	e.t.Helper()
	payloads := e.client.PlumblineV1alpha1().EventPayloads(systemNamespace)
	if _, err := blob.Read(e.t.Context(), payloads, event.Spec.Payload); err != nil {
		e.t.Errorf("the event has lost its payload: %v", err)
	}
}

// fail makes the API server answer err to a verb on a resource, until recover is called.
func (e *env) fail(verb, resource string, err error) (recovered func()) {
	e.client.PrependReactor(verb, resource,
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	return func() { e.client.ReactionChain = e.client.ReactionChain[1:] }
}

// failOnce makes the API server answer the first create of a resource with err, after it was
// applied if landed.
func (e *env) failOnce(resource string, err error, landed bool) {
	var once sync.Once
	e.client.PrependReactor("create", resource, func(a clienttesting.Action) (handled bool, _ runtime.Object, _ error) {
		once.Do(func() { handled = true })
		if handled && landed {
			created := a.(clienttesting.CreateAction).GetObject()
			if err := e.client.Tracker().Create(a.GetResource(), created, a.GetNamespace()); err != nil {
				panic(err)
			}
		}
		return handled, nil, err
	})
}

// settle sets the status of an event.
func (e *env) settle(name string, status v1alpha1.GitEventStatus) {
	e.t.Helper()
	events := e.client.PlumblineV1alpha1().GitEvents(systemNamespace)
	event, err := events.Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	event.Status = status
	if _, err := events.UpdateStatus(e.t.Context(), event, metav1.UpdateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

func settled(d v1alpha1.Disposition) v1alpha1.GitEventStatus {
	return v1alpha1.GitEventStatus{Phase: v1alpha1.PhaseSettled, Disposition: d}
}

// evict replaces an event by its tombstone, as the sweep does with events above its cap. It also
// works while the fake API server answers a call.
func (e *env) evict(name string) {
	e.t.Helper()
	tracker, events := e.client.Tracker(), v1alpha1.SchemeGroupVersion.WithResource("gitevents")
	found, err := tracker.Get(events, systemNamespace, name)
	if err != nil {
		e.t.Fatal(err)
	}
	page := &v1alpha1.TombstonePage{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: tombstone.PageOf(name)},
	}
	entry := tombstone.Of(found.(*v1alpha1.GitEvent), e.clock.Now().Add(retention))
	tombstone.Add(page, []tombstone.Entry{entry}, e.clock.Now())
	if err := tracker.Create(v1alpha1.SchemeGroupVersion.WithResource("tombstonepages"), page,
		systemNamespace); err != nil {
		e.t.Fatal(err)
	}
	if err := tracker.Delete(events, systemNamespace, name); err != nil {
		e.t.Fatal(err)
	}
}
