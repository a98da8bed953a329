// SPDX-License-Identifier: Apache-2.0

package pipelineruns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

func run(name, installation, state string) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "north", Name: name, UID: "0b5d0a0f-3b0a-4c7e-9a57-1c0c3e6f7a11",
		Labels: map[string]string{
			plumbline.InstallationLabel: installation, plumbline.EventLabel: "push-1", pipelinesascode.State: state,
		},
	}}
}

// Runs that are finished and reported, and those of another installation, are neither listed nor
// watched.
func TestCompletedRunsAreNotWatched(t *testing.T) {
	t.Parallel()
	unlabelled := run("unlabelled", "plumbline", "")
	delete(unlabelled.Labels, pipelinesascode.State)
	beside := run("reported-next-to-pipelines-as-code", "plumbline", "")
	delete(beside.Labels, pipelinesascode.State)
	beside.Labels[plumbline.ReportedLabel] = plumbline.Reported
	client := fake.NewSimpleClientset(run("going-on", "plumbline", pipelinesascode.StateStarted), unlabelled, beside,
		run("reported", "plumbline", pipelinesascode.StateCompleted),
		run("foreign", "elsewhere", pipelinesascode.StateStarted))
	var mu sync.Mutex
	var asked []string
	client.PrependReactor("list", "pipelineruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, "list "+action.(clienttesting.ListAction).GetListRestrictions().Labels.String())
		return false, nil, nil
	})
	changes := watch.NewRaceFreeFake()
	client.PrependWatchReactor("pipelineruns", func(action clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, "watch "+action.(clienttesting.WatchAction).GetWatchRestrictions().Labels.String())
		return true, changes, nil
	})
	informer := pipelineruns.RunInformer(context.WithValue(t.Context(), pipelineclient.Key{}, client), "plumbline")
	deleted := make(chan string, 1)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		deleted <- obj.(*pipelinev1.PipelineRun).Labels[plumbline.EventLabel]
	}}); err != nil {
		t.Fatal(err)
	}
	go informer.Run(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("not synced")
	}
	keys := informer.GetIndexer().ListKeys()
	slices.Sort(keys)
	if want := []string{"north/going-on", "north/unlabelled"}; !slices.Equal(keys, want) {
		t.Errorf("the cache has %v, want %v", keys, want)
	}
	for _, obj := range informer.GetIndexer().List() {
		if got := obj.(*pipelinev1.PipelineRun); len(got.Labels) != 1 {
			t.Errorf("the cache has all of a run: %+v", got)
		}
	}
	// what a server sends when the label is set
	changes.Delete(run("going-on", "plumbline", pipelinesascode.StateCompleted))
	select {
	case event := <-deleted:
		if event != "push-1" {
			t.Errorf("the run that left is of event %q", event)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody is told that a run has left")
	}
	mu.Lock()
	defer mu.Unlock()
	const selector = "pipelinesascode.tekton.dev/state!=completed,plumbline.dev/installation=plumbline," +
		"plumbline.dev/reported!=true"
	if want := []string{"list " + selector, "watch " + selector}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

// S9: the part of a run that is cached has a bound, whichever user created the run. It has all
// fields that the controllers read.
func TestTrimRunIsSmall(t *testing.T) {
	t.Parallel()
	whole := large()
	kept := pipelineruns.TrimRun(whole)
	all, part := marshal(t, whole), marshal(t, kept)
	t.Logf("a run of ten tasks has %d bytes, the cache keeps %d", len(all), len(part))
	if len(part) > 1500 {
		t.Errorf("the cache keeps %d bytes: %s", len(part), part)
	}
	watched, err := labels.Parse(pipelineruns.RunSelector("plumbline"))
	if err != nil || !watched.Matches(labels.Set(whole.Labels)) {
		t.Errorf("not watched, %v", err)
	}
	if kept.UID != whole.UID || kept.Name != whole.Name || kept.Namespace != whole.Namespace ||
		kept.ResourceVersion != whole.ResourceVersion ||
		kept.Labels[plumbline.EventLabel] != "push-1" || kept.IsDone() != whole.IsDone() ||
		kept.HasStarted() != whole.HasStarted() ||
		kept.Spec.Status != whole.Spec.Status || kept.DeletionTimestamp.IsZero() != whole.DeletionTimestamp.IsZero() ||
		*kept.Status.GetCondition(apis.ConditionSucceeded) != *whole.Status.GetCondition(apis.ConditionSucceeded) ||
		!kept.Status.CompletionTime.Equal(whole.Status.CompletionTime) || len(kept.Status.ChildReferences) != 10 ||
		!pipelineruns.Reportable(kept) {
		t.Errorf("something that is read is missing: %s", part)
	}
	if room := cap(kept.Status.ChildReferences); room > 12 {
		t.Errorf("there is room for %d tasks", room)
	}
	if again := marshal(t, pipelineruns.TrimRun(kept)); again != part {
		t.Errorf("trimmed twice it is another: %s", again)
	}
	for what, change := range map[string]func(run *pipelinev1.PipelineRun){
		"many tasks": func(run *pipelinev1.PipelineRun) { run.Status.SkippedTasks = make([]pipelinev1.SkippedTask, 11) },
		"a long name": func(run *pipelinev1.PipelineRun) {
			run.Status.ChildReferences[3].DisplayName = strings.Repeat("x", 1000)
		},
	} {
		whole := large()
		change(whole)
		again := pipelineruns.TrimRun(pipelineruns.TrimRun(whole))
		if pipelineruns.Reportable(again) || len(again.Status.ChildReferences)+len(again.Status.SkippedTasks) > 0 {
			t.Errorf("%s: kept is %s", what, marshal(t, again))
		}
	}
	if began := pipelineruns.TrimRun(run("new", "plumbline", pipelinesascode.StateStarted)); began.IsDone() ||
		began.HasStarted() {
		t.Errorf("a new run is %+v", began.Status)
	}
}

func marshal(t *testing.T, run *pipelinev1.PipelineRun) string {
	t.Helper()
	data, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// large is a finished run of ten tasks that is being deleted, as Tekton leaves it.
func large() *pipelinev1.PipelineRun {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	run := run("large", "plumbline", pipelinesascode.StateStarted)
	run.ResourceVersion, run.DeletionTimestamp, run.Finalizers = "7", &now, []string{"chains.tekton.dev/pipelinerun"}
	run.Annotations = map[string]string{"somebodys": strings.Repeat("words ", 100)}
	run.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled
	run.Spec.Params = pipelinev1.Params{{Name: "p", Value: *pipelinev1.NewStructuredValues(strings.Repeat("x", 200))}}
	run.Spec.PipelineSpec, run.Status.PipelineSpec = &pipelinev1.PipelineSpec{}, &pipelinev1.PipelineSpec{}
	run.Status.StartTime, run.Status.CompletionTime = &now, &now
	for i := range 10 {
		name := fmt.Sprintf("task-%d", i)
		run.Spec.PipelineSpec.Tasks = append(run.Spec.PipelineSpec.Tasks,
			pipelinev1.PipelineTask{Name: name, TaskRef: &pipelinev1.TaskRef{Name: name}})
		run.Status.ChildReferences = append(run.Status.ChildReferences,
			pipelinev1.ChildStatusReference{Name: "large-" + name, PipelineTaskName: name})
	}
	run.Status.PipelineSpec.Tasks = run.Spec.PipelineSpec.Tasks
	run.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: "False", Reason: "Cancelled", Message: "PipelineRun \"large\" was cancelled",
	})
	return run
}
