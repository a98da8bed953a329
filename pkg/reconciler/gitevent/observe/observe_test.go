// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

var errDown = apierrors.NewInternalError(errors.New("conversion failed"))

// pipelineRun returns one of event "push", with this many skipped tasks.
func pipelineRun(succeeded corev1.ConditionStatus, skipped int) *pipelinev1.PipelineRun {
	run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "run", UID: "uid", Labels: map[string]string{plumbline.EventLabel: "push"},
	}}
	run.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: succeeded, Reason: "Done", Message: "the password is hunter2",
	})
	for n := range skipped {
		run.Status.SkippedTasks = append(run.Status.SkippedTasks,
			pipelinev1.SkippedTask{Name: fmt.Sprint("deploy-", n), Reason: "When"})
	}
	return run
}

// observation is a case of TestObserveFindsWhetherARunIsFinished.
type observation struct {
	cached, live, deleted *pipelinev1.PipelineRun
	fails                 string // a call that fails
	change                func(*Input)
	want                  string // outcome, "error", or "" while it goes on
	unwatched             bool
	calls                 string
}

func observations() map[string]observation {
	goesOn, finished := pipelineRun(corev1.ConditionUnknown, 0), pipelineRun(corev1.ConditionTrue, 2)
	long := pipelineRun(corev1.ConditionFalse, 50) // of which the cache keeps a part
	another, renamed := pipelineRun(corev1.ConditionTrue, 0), pipelineRun(corev1.ConditionUnknown, 0)
	another.UID, renamed.Labels = "another", map[string]string{plumbline.EventLabel: "push-2"}
	busy := func() error { return errors.New("no time") }
	return map[string]observation{
		"goes on":                         {goesOn, goesOn, nil, "", nil, "", false, ""},
		"goes on and is not cached":       {nil, goesOn, nil, "", nil, "", true, "get"},
		"goes on and names another event": {renamed, goesOn, nil, "", nil, "", true, ""},
		"finished":                        {finished, finished, nil, "", nil, "Succeeded", false, "list"},
		"was seen as it finished": {
			goesOn, finished, nil, "", func(in *Input) { in.Seen = finished }, "Succeeded", false, "list",
		},
		"finished, and the cache has a part":   {long, long, nil, "", nil, "Failed", false, "get list"},
		"is pruned before the rest is read":    {long, nil, nil, "", nil, "Failed", false, "get list"},
		"is deleted":                           {nil, nil, nil, "", nil, "Deleted", false, "get"},
		"is deleted, and another has the name": {nil, another, nil, "", nil, "Deleted", false, "get"},
		"is deleted after it finished":         {nil, nil, finished, "", nil, "Succeeded", false, "get list"},
		"cannot be read":                       {nil, goesOn, nil, "get", nil, "error", false, "get"},
		"has no readable TaskRuns":             {finished, finished, nil, "list", nil, "error", false, "list"},
		"has none for long": {
			finished, finished, nil, "list", func(in *Input) { in.Failing = detailsLimit }, "Succeeded", false, "list",
		},
		"finished when there is no time": {
			finished, finished, nil, "", func(in *Input) { in.Exceeded = busy }, "error", false, "",
		},
		"goes on when there is no time": {
			goesOn, goesOn, nil, "", func(in *Input) { in.Exceeded = busy }, "", false, "",
		},
		"has secrets that cannot be read": {finished, finished, nil, "", func(in *Input) {
			in.Hiding = func(context.Context) (func(string) string, error) { return nil, errDown }
		}, "error", false, "list"},
	}
}

// A run that is not in the cache is read. It counts as deleted only if the API server says so, and
// neither the cache nor the watch has seen it finished.
func TestObserveFindsWhetherARunIsFinished(t *testing.T) {
	t.Parallel()
	for name, test := range observations() {
		var calls []string
		tekton := tektonfake.NewSimpleClientset()
		if test.live != nil {
			tekton = tektonfake.NewSimpleClientset(test.live)
		}
		tekton.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			calls = append(calls, action.GetVerb())
			return action.GetVerb() == test.fails, nil, errDown
		})
		runs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		if test.cached != nil {
			_ = runs.Add(pipelineruns.TrimRun(test.cached))
		}
		s := &Step{Tekton: tekton.TektonV1(), Runs: runs, Deleted: NewDeletedRuns()}
		if test.deleted != nil {
			s.Deleted.Note(test.deleted)
		}
		in := Input{
			Event: "push", Run: v1alpha1.Run{Namespace: "team", Name: "run", UID: "uid"}, MaxText: MaxText,
			Exceeded: func() error { return nil },
		}
		if test.change != nil {
			test.change(&in)
		}
		out, err := s.Observe(t.Context(), in)
		got := ""
		switch {
		case err != nil:
			got = "error"
		case out.Result != nil:
			got = string(out.Result.Outcome)
		}
		if made := strings.Join(calls, " "); got != test.want || out.Unwatched != test.unwatched || made != test.calls {
			t.Errorf("%s: %q, unwatched %v, calls %q; want %q, %v, %q: %v", name, got, out.Unwatched, made, test.want,
				test.unwatched, test.calls, err)
		}
		if test.cached != nil && len(test.cached.Status.SkippedTasks) == 50 &&
			(out.Result == nil || test.live != nil && !strings.Contains(out.Result.Text, "deploy-49")) {
			t.Errorf("%s: the report does not name all tasks: %+v", name, out.Result)
		}
	}
}

func TestObserveHidesSecretsAndLeavesTheCacheAlone(t *testing.T) {
	t.Parallel()
	failed := pipelineRun(corev1.ConditionFalse, 0)
	s := &Step{Tekton: tektonfake.NewSimpleClientset().TektonV1(), Runs: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil),
		Deleted: NewDeletedRuns()}
	out, err := s.Observe(t.Context(), Input{
		Run: v1alpha1.Run{Namespace: "team", Name: "run", UID: "uid"}, Seen: failed, MaxText: MaxText,
		Exceeded: func() error { return nil },
		Hiding: func(context.Context) (func(string) string, error) {
			return func(text string) string { return strings.ReplaceAll(text, "hunter2", "*****") }, nil
		},
	})
	if err != nil || !strings.Contains(out.Result.Message+out.Result.Text, "*****") ||
		strings.Contains(out.Result.Message+out.Result.Text, "hunter2") {
		t.Errorf("%+v, %v", out.Result, err)
	}
	if !strings.Contains(failed.Status.GetCondition(apis.ConditionSucceeded).Message, "hunter2") {
		t.Error("the PipelineRun itself was changed")
	}
}
