// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
)

func TestHowDeletedRunsHadEnded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	run := func(uid types.UID) *pipelinev1.PipelineRun {
		r := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		r.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "True"})
		return r
	}
	e := &DeletedRuns{}
	e.Note(&pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{UID: "goes on"}}, now)
	e.Note(run("a"), now)
	if e.Of("goes on") != nil || e.Of("a") == nil || e.Of("b") != nil {
		t.Error("known are not those that had ended")
	}
	e.Note(run("b"), now.Add(endedFor+time.Second))
	if e.Of("a") != nil || e.Of("b") == nil {
		t.Error("what was deleted long ago is still known, or what was just now is not")
	}
	for n := range 2 * maxEnded {
		e.Note(run(types.UID(fmt.Sprint(n))), now.Add(endedFor+time.Minute+time.Duration(n)))
	}
	if last := types.UID(fmt.Sprint(2*maxEnded - 1)); len(e.runs) != maxEnded || e.Of(last) == nil {
		t.Errorf("%d are known, want the %d last ones", len(e.runs), maxEnded)
	}
}
