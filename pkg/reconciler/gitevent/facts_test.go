// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// facts settles the event, with a new process for each reconcile, and returns the Kubernetes Events
// about what normally happens.
func (w *env) facts(outcome corev1.ConditionStatus) (all []string) {
	w.t.Helper()
	for range 20 {
		recorder := record.NewFakeRecorder(100)
		r := w.uncounted(w.reconciler)
		r.state.Recorder = recorder
		_ = r.Reconcile(context.Background(), system+"/push-1")
		for len(recorder.Events) > 0 {
			if event := <-recorder.Events; isFact(event) {
				all = append(all, event)
			}
		}
		w.advance(6 * time.Minute)
		w.finishRuns(outcome)
	}
	if !w.settled() {
		w.t.Fatalf("not settled: %+v", w.event().Status)
	}
	return all
}

// Each fact is one Kubernetes Event on the Repository, whatever process reconciles the event.
func TestFactsAreReportedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file    git.File
		outcome corev1.ConditionStatus
		want    []string
	}{
		"succeeds": {helloFile("hello"), corev1.ConditionTrue, []string{
			"Normal RepositoryMatchedPipelineRun push-1: pipelines start for main at", "Normal PipelineRunStarted push-1: hello (PipelineRun hello-",
			"Normal PipelineRunSucceeded push-1: hello (PipelineRun hello-"}},
		"fails": {helloFile("hello"), corev1.ConditionFalse, []string{
			"Normal RepositoryMatchedPipelineRun", "Normal PipelineRunStarted", "Warning PipelineRunFailed push-1: hello ("}},
		"no match": {pullFile("hello"), corev1.ConditionTrue, []string{
			"Normal RepositoryNoMatch push-1: nothing starts for main at"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, test.file)
			got := w.facts(test.outcome)
			for i := range test.want {
				if len(got) != len(test.want) || !strings.HasPrefix(got[i], test.want[i]) {
					t.Fatalf("the Events are %q, want %q", got, test.want)
				}
			}
		})
	}
}
