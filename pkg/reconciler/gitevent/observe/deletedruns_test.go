// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
)

func TestDeletedRunsRemembersFinishedRuns(t *testing.T) {
	t.Parallel()
	run := func(uid types.UID) *pipelinev1.PipelineRun {
		r := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		r.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "True"})
		return r
	}
	e := NewDeletedRuns()
	e.Note(&pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{UID: "running"}})
	e.Note(run("a"))
	if e.Get("running") != nil || e.Get("a") == nil || e.Get("b") != nil {
		t.Error("a run is known that had not finished, or was not noted, or the noted one is not")
	}
	for n := range maxEnded {
		e.Note(run(types.UID(fmt.Sprint(n))))
	}
	if e.Get("a") != nil || e.Get("0") == nil {
		t.Errorf("the oldest run is still known, or more than one was evicted")
	}
}
