// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"errors"
	"slices"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// settled returns a settled event that was recorded, and whose run of pipeline "build" finished,
// this many minutes after began.
func settled(name string, minutes int) *v1alpha1.GitEvent {
	at := metav1.NewTime(began.Add(time.Duration(minutes) * time.Minute))
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: name, CreationTimestamp: at}}
	event.Spec.Repository = v1alpha1.RepositoryReference{
		Namespace: "team",
		Name:      "app",
		UID:       "app",
		URL:       "https://git.example/team/app",
	}
	event.Status.Phase = v1alpha1.PhaseSettled
	event.Status.Runs = []v1alpha1.Run{{
		Pipeline: "build", Namespace: "team", Name: "run-of-" + name, UID: types.UID("uid-of-" + name),
		Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded, CompletedAt: &at},
	}}
	return event
}

// unsettled returns the same event before it is settled.
func unsettled(name string, minutes int) *v1alpha1.GitEvent {
	event := settled(name, minutes)
	event.Status.Phase = ""
	return event
}

func TestLaterEventsPruneOnlyWhatTheyRun(t *testing.T) {
	t.Parallel()
	other := unsettled("other-pipeline", 2)
	other.Status.Runs[0].Pipeline = "deploy"
	recreated := unsettled("recreated-repository", 2)
	recreated.Spec.Repository.UID = "another"
	keepsAll := unsettled("keeps-all", 2)
	keepsAll.Status.Runs[0].MaxKeepRuns = new(int64(-1))
	for name, c := range map[string]struct {
		open *v1alpha1.GitEvent
		want bool
	}{
		"an earlier event":        {unsettled("earlier", 0), false},
		"the event itself":        {unsettled("now", 1), false},
		"a later event":           {unsettled("later", 2), true},
		"one of the same second":  {unsettled("z-later-by-name", 1), true},
		"one that is settled":     {settled("over", 2), false},
		"one of another pipeline": {other, false},
		"one of a new Repository": {recreated, false},
		"one that prunes no runs": {keepsAll, false},
	} {
		got := laterEventsPrune(unsettled("now", 1), []*v1alpha1.GitEvent{c.open}, config.Retention{Default: 1})
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// pipelineRun returns the run of an event as it is listed.
func pipelineRun(event *v1alpha1.GitEvent) *metav1.PartialObjectMetadata {
	run := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: event.Status.Runs[0].Name, UID: types.UID("uid-of-" + event.Name),
		Labels: map[string]string{
			plumbline.InstallationLabel: "plumbline", plumbline.EventLabel: event.Name,
			pipelinesascode.Repository: "app", pipelinesascode.OriginalPRName: "build",
		},
		Annotations: map[string]string{pipelinesascode.Repository: "app", pipelinesascode.OriginalPRName: "build"},
	}}
	run.SetGroupVersionKind(pipelinev1.SchemeGroupVersion.WithKind("PipelineRun"))
	return run
}

// Only runs that an event has recorded as finished count, the earliest completion first.
func TestExcessIsWhatFinishedFirst(t *testing.T) {
	t.Parallel()
	now, running := unsettled("now", 5), unsettled("running", 1)
	unreported, unrecorded := settled("unreported", 1), settled("unrecorded", 1)
	unreported.Status.Unreported = true
	unrecorded.Status.Runs[0].UID = "another-object"
	events, runs := stored(t, now, running, unreported, unrecorded, settled("third", 3), settled("first", 1),
		settled("second", 2))
	for name, c := range map[string]struct {
		keep     int
		exceeded error
		want     []string
	}{
		"one is kept":       {1, nil, []string{"run-of-first", "run-of-second", "run-of-third"}},
		"three are kept":    {3, nil, []string{"run-of-first"}},
		"five are kept":     {5, nil, nil},
		"no time for reads": {0, fault.Throttledf(fault.ReasonBusy, time.Second, "later"), []string{"run-of-now"}},
	} {
		s := Step{
			Events: events.PlumblineV1alpha1(), Runs: runs,
			Open:  func(string, string) []*v1alpha1.GitEvent { return []*v1alpha1.GitEvent{now, running} },
			known: &recent.Map[types.UID, verdict]{},
		}
		old, err := s.excess(t.Context(), input{
			event: now, run: &now.Status.Runs[0], keep: c.keep, exceeded: func() error { return c.exceeded },
		})
		if got := namesOf(old); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// An event that cannot be read keeps only its own run.
func TestExcessIsReturnedWithAnError(t *testing.T) {
	t.Parallel()
	now := unsettled("now", 5)
	events, runs := stored(t, now, settled("first", 1), settled("second", 2), settled("third", 3))
	events.PrependReactor("get", "gitevents", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get, _ := action.(clienttesting.GetAction)
		return get.GetName() == "first", nil, errors.New("down") //nolint:err113 // any error
	})
	s := Step{
		Events: events.PlumblineV1alpha1(), Runs: runs,
		Open:  func(string, string) []*v1alpha1.GitEvent { return nil },
		known: &recent.Map[types.UID, verdict]{},
	}
	old, err := s.excess(t.Context(), input{
		event: now, run: &now.Status.Runs[0], keep: 1, exceeded: func() error { return nil },
	})
	want := []string{"run-of-second", "run-of-third"}
	if f := fault.Of(err); f == nil || f.Reason != ReasonNotPruned || !slices.Equal(namesOf(old), want) {
		t.Errorf("%v, %v; want %v and that one was not read", namesOf(old), err, want)
	}
}

// stored returns clients of events and of their runs.
func stored(t *testing.T, all ...*v1alpha1.GitEvent) (*fake.Clientset, metadata.Getter) {
	t.Helper()
	events, scheme := fake.NewSimpleClientset(), metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	runs := metadatafake.NewSimpleMetadataClient(scheme)
	for _, event := range all {
		for _, err := range []error{events.Tracker().Add(event), runs.Tracker().Add(pipelineRun(event))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return events, runs.Resource(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"))
}

func namesOf(runs []prunable) (names []string) {
	for _, run := range runs {
		names = append(names, run.Name)
	}
	return names
}
