// SPDX-License-Identifier: Apache-2.0

package gitevents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

const namespace = "plumbline"

// server is an API server that honours the field selector of GitEvents, which the fake clientset
// does not.
type server struct {
	ctx     context.Context
	changes *watch.RaceFreeFakeWatcher

	mu     sync.Mutex
	events []*v1alpha1.GitEvent
	asked  []string // the namespace and selector of each list and watch
	listed chan struct{}
}

func newServer(t *testing.T, events ...*v1alpha1.GitEvent) *server {
	t.Helper()
	s := &server{changes: watch.NewRaceFreeFake(), events: events, listed: make(chan struct{})}
	close(s.listed)
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "gitevents", s.list)
	client.PrependWatchReactor("gitevents", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if w, ok := action.(clienttesting.WatchAction); ok {
			s.ask(action, w.GetWatchRestrictions().Fields)
		}
		return true, s.changes, nil
	})
	s.ctx = context.WithValue(t.Context(), plumblineclient.Key{}, client)
	return s
}

func (s *server) ask(action clienttesting.Action, selector fields.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, action.GetVerb()+" "+action.GetNamespace()+" "+selector.String())
}

func (s *server) list(action clienttesting.Action) (bool, runtime.Object, error) {
	<-s.listed
	list, ok := action.(clienttesting.ListAction)
	if !ok {
		return false, nil, nil
	}
	selector := list.GetListRestrictions().Fields
	s.ask(action, selector)
	found := &v1alpha1.GitEventList{}
	for _, event := range s.events {
		if matches(selector, event) {
			found.Items = append(found.Items, *event)
		}
	}
	return true, found, nil
}

func matches(selector fields.Selector, event *v1alpha1.GitEvent) bool {
	return selector.Matches(fields.Set{"status.phase": string(event.Status.Phase)})
}

// settle writes the last status of an event. A watch of open events reports that as a deletion.
func (s *server) settle(event *v1alpha1.GitEvent) {
	after := event.DeepCopy()
	after.ResourceVersion, after.Status.Phase = after.ResourceVersion+"1", v1alpha1.PhaseSettled
	if matches(fields.ParseSelectorOrDie(v1alpha1.OpenEvents), after) {
		s.changes.Modify(after)
		return
	}
	s.changes.Delete(after)
}

func open(name, repository string) *v1alpha1.GitEvent {
	event := &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-x", ResourceVersion: "1"},
	}
	event.Spec.Repository.Namespace, event.Spec.Repository.Name, _ = strings.Cut(repository, "/")
	return event
}

func settled(name, repository string) *v1alpha1.GitEvent {
	event := open(name, repository)
	event.Status.Phase = v1alpha1.PhaseSettled
	return event
}

func started(t *testing.T, s *server) *gitevents.Watch {
	t.Helper()
	w := gitevents.New(namespace)
	if err := w.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func names(events []*v1alpha1.GitEvent) string {
	var all []string
	for _, event := range events {
		all = append(all, event.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// eventually polls, because an informer has a change only a moment later.
func eventually(t *testing.T, what, want string, got func() string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for got() != want {
		select {
		case <-limit:
			t.Fatalf("%s: %q, want %q", what, got(), want)
		case <-tick.C:
		}
	}
}

func TestOfFindsEventsByTheirRepository(t *testing.T) {
	t.Parallel()
	s := newServer(t, open("a", "north/app"), open("b", "north/app"), open("c", "south/app"), settled("old", "north/app"))
	w := started(t, s)
	for repository, want := range map[string]string{"north/app": "a b", "south/app": "c", "north/lib": ""} {
		in, name, _ := strings.Cut(repository, "/")
		if got := names(w.Of(in, name)); got != want {
			t.Errorf("the open events of %s are %q, want %q", repository, got, want)
		}
	}
	s.changes.Add(open("d", "south/app"))
	eventually(t, "an event that came later", "c d", func() string { return names(w.Of("south", "app")) })
}

func TestSettledEventsAreNotCached(t *testing.T) {
	t.Parallel()
	a := open("a", "north/app")
	s := newServer(t, a, settled("old", "north/app"))
	w := started(t, s)
	s.settle(a)
	eventually(t, "an event that was settled", "", func() string { return names(w.Of("north", "app")) })
	eventually(t, "the indexer", "",
		func() string { return strings.Join(w.Informer(s.ctx).Informer().GetIndexer().ListKeys(), " ") })
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []string{"list plumbline status.phase!=Settled",
		"watch plumbline status.phase!=Settled"}; !slices.Equal(s.asked, want) {
		t.Errorf("asked for %q, want %q", s.asked, want)
	}
}

func TestStartWaitsForTheFirstList(t *testing.T) {
	t.Parallel()
	s := newServer(t, open("a", "north/app"))
	s.listed = make(chan struct{})
	w, done := gitevents.New(namespace), make(chan error)
	go func() { done <- w.Start(s.ctx) }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case s.listed <- struct{}{}: // the server is asked, and answers
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := w.Start(s.ctx); err != nil { // each controller of a process calls it
		t.Fatal(err)
	}
	if got := names(w.Of("north", "app")); got != "a" {
		t.Errorf("started, and knows %q", got)
	}
}

func TestOfIsEmptyBeforeTheInformerExists(t *testing.T) {
	t.Parallel()
	if got := gitevents.New(namespace).Of("north", "app"); got != nil {
		t.Errorf("%v", got)
	}
}

// The cached part of an event is a fraction of it, and does not grow with the texts of users.
func TestTrimIsSmall(t *testing.T) {
	t.Parallel()
	event := large(2)
	w := started(t, newServer(t, event))
	kept := w.Of("north", "app")[0]
	whole, part := size(t, event), size(t, kept)
	t.Logf("an open event of two runs has %d bytes, the cache keeps %d", whole, part)
	if part > 1900 {
		t.Errorf("the cache keeps %d bytes of an event: %s", part, marshal(t, kept))
	}
	a, b := size(t, gitevents.Trim(large(10))), size(t, gitevents.Trim(large(11)))
	if b-a > 350 {
		t.Errorf("each further run costs %d bytes", b-a)
	}
	if again := marshal(t, gitevents.Trim(kept)); again != marshal(t, kept) {
		t.Errorf("trimmed twice it is another: %s", again)
	}
}

func size(t *testing.T, event *v1alpha1.GitEvent) int { return len(marshal(t, event)) }

func marshal(t *testing.T, event *v1alpha1.GitEvent) string {
	t.Helper()
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// large is a planned event with finished runs and long texts everywhere.
func large(runs int) *v1alpha1.GitEvent {
	const words = "words that somebody wrote "
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	event := open("push-0123456789abcdef0123456789abcdef", "north/app")
	event.Annotations = map[string]string{"plumbline.dev/traceparent": words}
	event.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "receiver", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}},
	}
	event.Spec.ReceivedAt, event.Spec.Commit = now, &v1alpha1.Commit{Title: strings.Repeat(words, 10)}
	event.Spec.PullRequest = &v1alpha1.PullRequest{Title: strings.Repeat(words, 10)}
	for _, step := range []apis.ConditionType{v1alpha1.GitEventPlanned, v1alpha1.GitEventCreated,
		v1alpha1.GitEventReported, v1alpha1.GitEventReady} {
		event.Status.Conditions = append(event.Status.Conditions, apis.Condition{
			Type: step, Status: "Unknown", Reason: "Waiting", Message: strings.Repeat(words, 4),
			LastTransitionTime: apis.VolatileTime{Inner: now},
		})
	}
	event.Status.Waits = []v1alpha1.Wait{
		{Step: "report", Class: "Transient", Reason: "Unavailable", Message: words, Since: now, NotBefore: &now},
	}
	event.Status.Plan = &v1alpha1.Plan{HeadSHA: strings.Repeat("a", 40), Message: words}
	for i := range runs {
		name := fmt.Sprintf("a-pipeline-with-a-long-name-%02d-0123456789abc", i)
		event.Status.Plan.Decisions = append(event.Status.Plan.Decisions,
			v1alpha1.Decision{File: ".tekton/" + name + ".yaml", Reason: strings.Repeat(words, 5)})
		event.Status.Runs = append(event.Status.Runs, v1alpha1.Run{
			Name: name, Namespace: "north", Pipeline: name, UID: "0b5d0a0f-3b0a-4c7e-9a57-1c0c3e6f7a11", Note: words,
			Secret: name,
			Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed, Reason: "Failed", Message: strings.Repeat(words, 20),
				StartedAt: &now, CompletedAt: &now, Text: strings.Repeat(words, 100)},
		})
		event.Status.Checks = append(event.Status.Checks, v1alpha1.Check{
			Key: name, Name: "Pipelines as Code CI / " + name, ID: "12345678", Accepted: "0123456789abcdef", Concluded: true,
		})
	}
	return event
}
