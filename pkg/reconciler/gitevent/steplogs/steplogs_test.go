// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// failedEvent is an event whose only run has failed.
func failedEvent(name string) *attempt.Attempt {
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a := &attempt.Attempt{
		Event: event, Config: config.Default(), Clock: clock.RealClock{}, StoredPlan: (&plans.Store{}).Of(event),
	}
	result := &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}
	result.Log = (&Step{}).Wanted(a, result)
	event.Status.Runs = []v1alpha1.Run{{Name: name + "-run", Namespace: "team", Result: result}}
	return a
}

// hanging lists no TaskRuns, once answer is closed.
type hanging struct {
	tektonv1.TaskRunInterface
	answer chan struct{}
}

func (h hanging) TaskRuns(string) tektonv1.TaskRunInterface { return h }

func (h hanging) List(ctx context.Context, _ metav1.ListOptions) (*pipelinev1.TaskRunList, error) {
	select {
	case <-h.answer:
		return &pipelinev1.TaskRunList{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The pull requests of a Repository share two workers. So ten events whose logs hang delay their
// reports by two seconds in all, not by two seconds each.
func TestHangingLogsDelayFewReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer, woken := make(chan struct{}), make(chan string, 100)
		s := &Step{
			Reader: &Reader{Tekton: hanging{answer: answer}},
			Wake:   func(event string, _ time.Duration) { woken <- event },
		}
		var events []*attempt.Attempt
		start := time.Now()
		for n := range 10 {
			a := failedEvent(fmt.Sprint("event-", n))
			s.Do(t.Context(), a)
			events = append(events, a)
		}
		if delay := time.Since(start); delay > 2*time.Second {
			t.Errorf("the last report waits for %s", delay)
		}
		close(answer)
		for range events {
			<-woken
		}
		for _, a := range events {
			if s.Do(t.Context(), a); a.Event.Status.Runs[0].Result.Log.Pending() {
				t.Errorf("%s still waits for its log", a.Event.Name)
			}
		}
		quick := failedEvent("quick")
		if s.Do(t.Context(), quick); quick.Event.Status.Runs[0].Result.Log.Pending() || len(woken) > 0 {
			t.Error("the report does not wait for a log that is there at once")
		}
	})
}
