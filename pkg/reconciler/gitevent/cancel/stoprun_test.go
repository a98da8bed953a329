// SPDX-License-Identifier: Apache-2.0

package cancel

import (
	"errors"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func pipelineRun(change func(*pipelinev1.PipelineRun)) *pipelinev1.PipelineRun {
	run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "uid"}}
	if change != nil {
		change(run)
	}
	return run
}

func finished(run *pipelinev1.PipelineRun) {
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
}

func stopped(run *pipelinev1.PipelineRun) {
	run.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled
}

func TestOnlyUnfinishedRunsAreStopped(t *testing.T) {
	t.Parallel()
	why := &v1alpha1.Cancellation{Why: "rita asked for it"}
	for name, test := range map[string]struct {
		run  v1alpha1.Run
		why  *v1alpha1.Cancellation
		seen *pipelinev1.PipelineRun
		want bool
	}{
		"is not cancelled":        {v1alpha1.Run{UID: "uid"}, nil, nil, false},
		"is not created":          {v1alpha1.Run{}, why, nil, false},
		"has a result":            {v1alpha1.Run{UID: "uid", Result: &v1alpha1.Result{}}, why, nil, false},
		"was not seen":            {v1alpha1.Run{UID: "uid"}, why, nil, true},
		"goes on":                 {v1alpha1.Run{UID: "uid"}, why, pipelineRun(nil), true},
		"is finished":             {v1alpha1.Run{UID: "uid"}, why, pipelineRun(finished), false},
		"was stopped by somebody": {v1alpha1.Run{UID: "uid"}, why, pipelineRun(stopped), false},
	} {
		if got := mustStop(&test.run, test.why, test.seen); got != test.want {
			t.Errorf("a run that %s: %v, want %v", name, got, test.want)
		}
	}
}

// D5: a run may finish between the last read and the patch, which is then refused for good.
func TestStopIgnoresARefusalIfTheRunNeedsNoStop(t *testing.T) {
	t.Parallel()
	denied := apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "run",
		errors.New(`admission webhook "policy" denied the request: no`))
	unread := apierrors.NewInternalError(errors.New("down"))
	other := pipelineRun(func(run *pipelinev1.PipelineRun) { run.UID = "another" })
	for name, test := range map[string]struct {
		live       *pipelinev1.PipelineRun
		patch, get error
		seen       bool
		retried    bool
	}{
		"is told to stop":       {pipelineRun(nil), nil, nil, true, false},
		"goes on":               {pipelineRun(nil), denied, nil, false, true},
		"is finished":           {pipelineRun(finished), denied, nil, true, false},
		"was stopped":           {pipelineRun(stopped), denied, nil, true, false},
		"is gone":               {nil, denied, nil, false, false},
		"has a name of another": {other, denied, nil, false, false},
		"cannot be read":        {pipelineRun(finished), denied, unread, false, true},
	} {
		tekton := tektonfake.NewSimpleClientset()
		if test.live != nil {
			tekton = tektonfake.NewSimpleClientset(test.live)
		}
		patch := ""
		tekton.PrependReactor("*", "pipelineruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if asked, ok := action.(clienttesting.PatchAction); ok {
				patch = string(asked.GetPatch())
				return test.patch != nil, nil, test.patch
			}
			return test.get != nil, nil, test.get
		})
		seen, err := stop(t.Context(), tekton.TektonV1().PipelineRuns("team"),
			&v1alpha1.Run{Namespace: "team", Name: "run", UID: "uid"})
		if (seen != nil) != test.seen || (err != nil) != test.retried || err != nil && !fault.Is(err, fault.Transient) {
			t.Errorf("a run that %s: seen %v, error %v", name, seen != nil, err)
		}
		if !strings.Contains(patch, `"uid":"uid"`) || !strings.Contains(patch, "CancelledRunFinally") {
			t.Errorf("a run that %s: patch %s", name, patch)
		}
	}
}
