// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Violated returns a violation with a message.
func Violated(invariant, subject, format string, args ...any) Violation {
	return Violation{Invariant: invariant, Subject: subject, Message: fmt.Sprintf(format, args...)}
}

// Accounted is I-1: every delivery that was acknowledged as recorded has its event, with a
// disposition. Of several records of one delivery at most one has runs. A delivery that was always
// ignored has none.
func (e *Evidence) Accounted() (broken []Violation) {
	for guid, recorded := range e.acknowledged() {
		records, withRuns := 0, 0
		for _, event := range e.Events {
			if event.Spec.DeliveryKey != guid {
				continue
			}
			records++
			if event.Status.Disposition == "" {
				broken = append(broken, Violated("I-1", event.Name, "GitEvent %s has no disposition; it waits: %v", event.Name,
					event.Status.Waits))
			}
			if slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return run.Started() }) {
				withRuns++
			}
		}
		if (records > 0) != recorded || withRuns > 1 {
			broken = append(broken, Violated("I-1", guid,
				"delivery %s, answered as recorded: %v, has %d GitEvents, %d with runs", guid, recorded, records, withRuns))
		}
	}
	return broken
}

// acknowledged maps the deliveries that got only answers of 2xx, or one 202, to whether one was
// 202.
func (e *Evidence) acknowledged() map[string]bool {
	answers := map[string][]int{}
	for _, d := range e.Deliveries {
		answers[d.Key] = append(answers[d.Key], d.Code)
	}
	out := map[string]bool{}
	for guid, codes := range answers {
		switch {
		case slices.Contains(codes, 202):
			out[guid] = true
		case !slices.ContainsFunc(codes, func(code int) bool { return code != 200 }):
			out[guid] = false
		}
	}
	return out
}

// Once is I-2: at most one PipelineRun for each delivery, pipeline and attempt, each planned by an
// event, and the one that the event recorded. An attempt that another one has replaced has failed,
// and no step of it exited with a code.
func (e *Evidence) Once() (broken []Violation) {
	deliveries := map[string]string{}
	for _, event := range e.Events {
		deliveries[event.Name] = event.Spec.DeliveryKey
	}
	made := map[string]string{}
	for _, run := range e.Made() {
		delivery, known := deliveries[run.Labels[plumbline.EventLabel]]
		planned, uid, attempt := e.attemptOf(&run)
		if !known || attempt == 0 {
			broken = append(broken, Violated("I-2", run.Name, "no GitEvent has planned PipelineRun %s/%s", run.Namespace,
				run.Name))
			continue
		}
		if uid != "" && uid != run.UID {
			broken = append(broken, Violated("I-2", run.Name, "PipelineRun %s/%s was made a second time", run.Namespace,
				run.Name))
		}
		if attempt < planned.Attempt() && !replaceable(&run, planned.Attempts[attempt-1]) {
			broken = append(broken, Violated("I-2", run.Name, "PipelineRun %s/%s was repeated, and ended as %v", run.Namespace,
				run.Name, run.Status.GetCondition(apis.ConditionSucceeded)))
		}
		key := fmt.Sprintf("%s %s, attempt %d,", delivery, planned.Pipeline, attempt)
		if other := made[key]; other != "" {
			broken = append(broken, Violated("I-2", run.Name, "delivery and pipeline %s have the PipelineRuns %s and %s", key,
				other, run.Name))
		}
		made[key] = run.Name
	}
	return broken
}

// replaceable reports whether another attempt may follow a PipelineRun: it has failed, it was not
// cancelled, and no step of the author failed.
func replaceable(run *pipelinev1.PipelineRun, recorded v1alpha1.FailedAttempt) bool {
	condition := run.Status.GetCondition(apis.ConditionSucceeded)
	return condition.IsFalse() && condition.Reason == pipelinev1.PipelineRunReasonFailed.String() &&
		run.Spec.Status == "" && !strings.Contains(recorded.Cause, "exited with code")
}

// Failures is I-3, over every write that the forge received.
func (e *Evidence) Failures() (broken []Violation) {
	for _, write := range e.Writes {
		if write.Conclusion != "failure" {
			continue
		}
		run, planned := e.Planned[write.ExternalID]
		if !planned || (run.Refused == nil && e.succeeded(run) != corev1.ConditionFalse) {
			broken = append(broken, Violated("I-3", write.ExternalID,
				"write %d says failure of %q (%s), which was not refused and is %q", write.N, write.Name, write.ExternalID,
				e.succeeded(run)))
		}
	}
	return broken
}

// Successes is I-4, over every write that the forge received.
func (e *Evidence) Successes() (broken []Violation) {
	for _, write := range e.Writes {
		if write.Conclusion != "success" && write.Conclusion != "neutral" {
			continue
		}
		if run, planned := e.Planned[write.ExternalID]; !planned || e.succeeded(run) != corev1.ConditionTrue {
			broken = append(broken, Violated("I-4", write.ExternalID, "write %d says %s of %q (%s), which is %q", write.N,
				write.Conclusion, write.Name, write.ExternalID, e.succeeded(run)))
		}
	}
	return broken
}

// Reopened is I-7: no write reopened a completed check.
func (e *Evidence) Reopened() (broken []Violation) {
	completed := map[string]bool{}
	for _, write := range e.Writes {
		if !write.Applied || write.Check == "" {
			continue
		}
		if completed[write.Check] && write.Conclusion == "" && write.Status != "" {
			broken = append(broken, Violated("I-7", write.ExternalID, "write %d reopens check %s %q", write.N, write.Check,
				write.Name))
		}
		completed[write.Check] = completed[write.Check] || write.Conclusion != ""
	}
	return broken
}

// succeeded returns the final Succeeded condition of a planned run, Unknown before its end.
func (e *Evidence) succeeded(run v1alpha1.Run) corev1.ConditionStatus {
	if live := e.pipelineRun(run); live != nil {
		if condition := live.Status.GetCondition(apis.ConditionSucceeded); condition != nil {
			return condition.Status
		}
		return corev1.ConditionUnknown
	}
	if run.Result == nil {
		return corev1.ConditionUnknown
	}
	switch run.Result.Outcome {
	case v1alpha1.OutcomeSucceeded:
		return corev1.ConditionTrue
	case v1alpha1.OutcomeFailed:
		return corev1.ConditionFalse
	case v1alpha1.OutcomeCancelled, v1alpha1.OutcomeDeleted:
	}
	return corev1.ConditionUnknown
}

// failed reports whether Tekton says of an existing run that it failed, and not that it was
// cancelled.
func (e *Evidence) failed(run v1alpha1.Run) bool {
	cancelled := []pipelinev1.PipelineRunReason{
		pipelinev1.PipelineRunReasonCancelled, pipelinev1.PipelineRunReasonCancelledRunningFinally,
		pipelinev1.PipelineRunReasonStoppedRunningFinally,
	}
	live := e.pipelineRun(run)
	if live == nil {
		return false
	}
	condition := live.Status.GetCondition(apis.ConditionSucceeded)
	return condition.IsFalse() && !slices.Contains(cancelled, pipelinev1.PipelineRunReason(condition.Reason))
}

// pipelineRun returns that of a planned run, nil if it was never seen.
func (e *Evidence) pipelineRun(run v1alpha1.Run) *pipelinev1.PipelineRun {
	for _, all := range [][]pipelinev1.PipelineRun{e.Live, e.Gone} {
		for i := range all {
			if all[i].Name == run.Name && all[i].UID == run.UID {
				return &all[i]
			}
		}
	}
	return nil
}
