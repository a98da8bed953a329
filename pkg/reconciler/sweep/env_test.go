// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	logtesting "knative.dev/pkg/logging/testing"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

const system = "plumbline"

// env is an API server with Plumbline's own kinds, and the process that sweeps them.
type env struct {
	t        *testing.T
	clock    *clocktesting.FakePassiveClock
	kube     *kubefake.Clientset
	events   map[string]*v1alpha1.GitEvent
	payloads map[string]*metav1.PartialObjectMetadata
	pages    map[string]*v1alpha1.TombstonePage
	runs     map[string]*metav1.PartialObjectMetadata // by namespace and name
	settings map[string]string

	calls map[string]int
	// answer is called before each call; nil lets it pass.
	answer  func(call, name string) error
	perCall time.Duration // that each call takes
	version int
	names   []string // of the list under way
	sweep   *Reconciler
	failed  int // what the workqueue knows of failures since it was made to forget them
}

func newEnv(t *testing.T) *env {
	w := &env{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		kube:   kubefake.NewSimpleClientset(),
		events: map[string]*v1alpha1.GitEvent{}, payloads: map[string]*metav1.PartialObjectMetadata{},
		pages: map[string]*v1alpha1.TombstonePage{},
		calls: map[string]int{}, answer: func(string, string) error { return nil },
	}
	w.restart()
	return w
}

// restart starts a process with an empty memory.
func (w *env) restart() {
	w.t.Helper()
	r := &Reconciler{
		namespace: system, events: eventClient{w: w}, payloads: payloadClient{w: w}, tombstones: pageClient{w: w},
		secrets: w.kube.CoreV1(), open: func(string) bool { return false },
		settings: config.NewStore(logtesting.TestLogger(w.t)), clock: w.clock,
		forget: func() { w.failed = 0 },
	}
	var err error
	r.metrics, err = newMetrics(noop.NewMeterProvider().Meter(""), func() bool { return true })
	w.must(err)
	r.settings.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: w.settings,
	})
	r.plan(func(resource string) metadata.ResourceInterface { return lister{w: w, resource: resource} })
	w.must(r.Promote(reconciler.UniversalBucket(), nil))
	w.sweep = r
}

// pass reconciles until the pass has ended, and returns the number of reconciles.
func (w *env) pass() int {
	w.t.Helper()
	for n := 1; n < 10_000; n++ {
		err := w.sweep.Reconcile(w.t.Context(), system+"/"+key)
		if err == nil {
			w.t.Fatal("the next pass is not requested")
		}
		if backoff.Retried(err) {
			w.failed++
		}
		if w.sweep.at == (position{}) {
			return n
		}
	}
	w.t.Fatalf("the pass does not end: it is at %+v", w.sweep.at)
	return 0
}

func (w *env) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *env) later(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// called counts a call and lets the test fail it.
func (w *env) called(call, name string) error {
	w.calls[call]++
	w.later(w.perCall)
	return w.answer(call, name)
}

// object returns what exists of a name; nil if there is nothing.
func (w *env) object(name string) metav1.ObjectMeta {
	w.version++
	return metav1.ObjectMeta{Namespace: system, Name: name, UID: types.UID(fmt.Sprint("uid-", w.version)),
		ResourceVersion:   fmt.Sprint(w.version),
		CreationTimestamp: metav1.NewTime(w.clock.Now().Truncate(time.Second))}
}

// settled adds an event that settles when it is received.
func (w *env) settled(key string) *v1alpha1.GitEvent {
	now := metav1.NewTime(w.clock.Now())
	e := &v1alpha1.GitEvent{
		ObjectMeta: w.object(v1alpha1.EventName("push", "github", "github.com", key)),
		Spec:       v1alpha1.GitEventSpec{Payload: v1alpha1.BlobReference{Digest: blob.Digest([]byte(key))}},
		Status: v1alpha1.GitEventStatus{
			Phase: v1alpha1.PhaseSettled, Disposition: v1alpha1.DispositionRuns, SettledAt: &now,
		},
	}
	w.events[e.Name] = e
	return e
}

func (w *env) payload(name, event string) {
	m := w.object(name)
	if event != "" {
		m.Labels = map[string]string{plumbline.EventLabel: event}
	}
	w.payloads[name] = &metav1.PartialObjectMetadata{ObjectMeta: m}
}

type eventClient struct {
	plumblineclient.GitEventInterface
	w *env
}

func (c eventClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.GitEvent, error) {
	if err := c.w.called("get gitevents", name); err != nil {
		return nil, err
	}
	if e := c.w.events[name]; e != nil {
		return e.DeepCopy(), nil
	}
	return nil, notFound("gitevents", name)
}

func (c eventClient) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	if err := c.w.called("delete gitevents", name); err != nil {
		return err
	}
	e := c.w.events[name]
	if e == nil {
		return notFound("gitevents", name)
	}
	if o.Preconditions == nil || *o.Preconditions.UID != e.UID {
		c.w.t.Errorf("%s is deleted without its UID", name)
	}
	if *o.Preconditions.ResourceVersion != e.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.Resource("gitevents"), name, errors.New("it was changed"))
	}
	delete(c.w.events, name)
	return nil
}

func (c eventClient) UpdateStatus(_ context.Context, e *v1alpha1.GitEvent, _ metav1.UpdateOptions) (*v1alpha1.GitEvent,
	error) {
	if err := c.w.called("update gitevents/status", e.Name); err != nil {
		return nil, err
	}
	c.w.events[e.Name] = e.DeepCopy()
	return e, nil
}

type payloadClient struct {
	plumblineclient.EventPayloadInterface
	w *env
}

func (c payloadClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	if err := c.w.called("delete eventpayloads", name); err != nil {
		return err
	}
	delete(c.w.payloads, name)
	return nil
}

type pageClient struct {
	plumblineclient.TombstonePageInterface
	w *env
}

func (c pageClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.TombstonePage, error) {
	if err := c.w.called("get tombstonepages", name); err != nil {
		return nil, err
	}
	if p := c.w.pages[name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, notFound("tombstonepages", name)
}

func (c pageClient) put(call string, page *v1alpha1.TombstonePage) (*v1alpha1.TombstonePage, error) {
	if err := c.w.called(call, page.Name); err != nil {
		return nil, err
	}
	stored := page.DeepCopy()
	stored.ObjectMeta = c.w.object(page.Name)
	c.w.pages[page.Name] = stored
	return stored, nil
}

func (c pageClient) Create(_ context.Context, page *v1alpha1.TombstonePage,
	_ metav1.CreateOptions) (*v1alpha1.TombstonePage, error) {
	if c.w.pages[page.Name] != nil {
		return nil, apierrors.NewAlreadyExists(v1alpha1.Resource("tombstonepages"), page.Name)
	}
	return c.put("create tombstonepages", page)
}

func (c pageClient) Update(_ context.Context, page *v1alpha1.TombstonePage,
	_ metav1.UpdateOptions) (*v1alpha1.TombstonePage, error) {
	if have := c.w.pages[page.Name]; have == nil || have.ResourceVersion != page.ResourceVersion {
		return nil, apierrors.NewConflict(v1alpha1.Resource("tombstonepages"), page.Name, nil)
	}
	return c.put("update tombstonepages", page)
}

func (c pageClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	if err := c.w.called("delete tombstonepages", name); err != nil {
		return err
	}
	delete(c.w.pages, name)
	return nil
}
