// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// sound returns a delivery with one run that succeeded and was reported correctly.
func sound() *Evidence {
	run := v1alpha1.Run{Pipeline: "p", Name: "p-1", UID: "u"}
	live := pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: "p-1", UID: "u", Labels: map[string]string{plumbline.EventLabel: "e"}},
	}
	live.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
	return &Evidence{
		Events: []v1alpha1.GitEvent{{
			ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.GitEventSpec{DeliveryKey: "d"},
			Status: v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionRuns, Runs: []v1alpha1.Run{run}},
		}},
		Planned: map[string]v1alpha1.Run{"p-1": run}, Live: []pipelinev1.PipelineRun{live},
		Deliveries: []Delivery{{Key: "d", Code: 202}},
		Writes:     []Write{{N: 1, Applied: true, Check: "9", ExternalID: "p-1", Status: "completed", Conclusion: "success"}},
		Checks: []Check{
			{ID: "9", Number: 9, ExternalID: "p-1", Status: "completed", Conclusion: "success", Title: "t", Summary: "s"},
		},
	}
}

// The checker finds each invariant broken, and has no finding in correct evidence.
func TestBrokenInvariantsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string
		spoil      func(*Evidence)
	}{
		{"nothing is wrong", "", func(*Evidence) {}},
		{"an acknowledged delivery has no event", "I-1", func(s *Evidence) { s.Events = nil }},
		{"an event has no disposition", "I-1", func(s *Evidence) { s.Events[0].Status.Disposition = "" }},
		{"a delivery has two events with runs", "I-1", func(s *Evidence) { s.Events = append(s.Events, s.Events[0]) }},
		{"an ignored delivery has an event", "I-1", func(s *Evidence) { s.Deliveries[0].Code = 200 }},
		{"a delivery and pipeline have two runs", "I-2", func(s *Evidence) {
			s.Planned["p-2"] = v1alpha1.Run{Pipeline: "p", Name: "p-2"}
			s.Live = append(s.Live, *s.Live[0].DeepCopy())
			s.Live[1].Name = "p-2"
		}},
		{"nobody planned a run", "I-2", func(s *Evidence) { s.Live[0].Name = "x" }},
		{"a run was made a second time", "I-2", func(s *Evidence) { s.Live[0].UID = "v" }},
		{"a failure was written and corrected", "I-3", func(s *Evidence) {
			s.Writes = append([]Write{{Conclusion: "failure", ExternalID: "p-1"}}, s.Writes...)
		}},
		{"a success of a run that failed", "I-4", func(s *Evidence) {
			s.Live[0].Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
		}},
		{"a terminal run has an open check", "I-5",
			func(s *Evidence) { s.Checks[0].Status, s.Checks[0].Conclusion = "in_progress", "" }},
		{"a run that failed is said to be cancelled", "I-5", func(s *Evidence) {
			s.Planned["p-1"] = v1alpha1.Run{
				Pipeline: "p", Name: "p-1", UID: "u", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled},
			}
			s.Live[0].Status.SetCondition(&apis.Condition{
				Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "Failed",
			})
			s.Writes, s.Checks[0].Conclusion = nil, "cancelled"
		}},
		{"a run that was cancelled is said to be", "", func(s *Evidence) {
			s.Planned["p-1"] = v1alpha1.Run{
				Pipeline: "p", Name: "p-1", UID: "u", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled},
			}
			s.Live[0].Status.SetCondition(&apis.Condition{
				Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "Cancelled",
			})
			s.Writes, s.Checks[0].Conclusion = nil, "cancelled"
		}},
		{"a run has no check", "I-5", func(s *Evidence) { s.Checks = nil }},
		{"a run that waits does not say for what", "I-5", func(s *Evidence) {
			s.Planned["p-1"], s.Live = v1alpha1.Run{Pipeline: "p", Name: "p-1"}, nil
			s.Writes, s.Checks[0].Status, s.Checks[0].Conclusion = nil, "queued", ""
		}},
		{"a completed check is reopened", "I-7", func(s *Evidence) {
			s.Writes = append(s.Writes, Write{Applied: true, Check: "9", ExternalID: "p-1", Status: "in_progress"})
		}},
		{"a duplicate is left open", "I-8", func(s *Evidence) {
			s.Checks = append([]Check{{ID: "8", Number: 8, ExternalID: "p-1", Status: "in_progress"}}, s.Checks...)
		}},
		{"the only check of a run is closed as superseded", "I-5", func(s *Evidence) {
			s.Checks[0].Conclusion, s.Checks[0].Title, s.Checks[0].Replaced = "cancelled", "Superseded", true
		}},
		{"nothing is wrong where another run's status took the place on GitLab", "", func(s *Evidence) {
			s.Checks[0].Conclusion, s.Checks[0].Replaced, s.Checks[0].Line = "cancelled", true, true
		}},
		{"a check of nothing", "I-8", func(s *Evidence) {
			s.Checks = append(s.Checks, Check{ID: "10", Number: 10, ExternalID: "y"})
		}},
	} {
		s := sound()
		c.spoil(s)
		var err error
		for _, v := range append(s.Never(), s.Eventually()...) {
			err = errors.Join(err, v)
		}
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: found %v, want %q", c.what, err, c.want)
		}
	}
}
