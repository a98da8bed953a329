// SPDX-License-Identifier: Apache-2.0

package e2e

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

// sound is a delivery with one run that succeeded, reported as it should be.
func sound() *everything {
	run := v1alpha1.Run{Pipeline: "p", Name: "p-1", UID: "u"}
	live := pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Name: "p-1", UID: "u", Labels: map[string]string{plumbline.EventLabel: "e"}}}
	live.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
	return &everything{
		events: []v1alpha1.GitEvent{{
			ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.GitEventSpec{DeliveryKey: "d"},
			Status: v1alpha1.GitEventStatus{Disposition: v1alpha1.DispositionRuns, Runs: []v1alpha1.Run{run}},
		}},
		runs: map[string]v1alpha1.Run{"p-1": run}, live: []pipelinev1.PipelineRun{live},
		deliveries: []delivered{{key: "d", code: 202}},
		writes:     []write{{N: 1, Applied: true, Check: "9", ExternalID: "p-1", Status: "completed", Conclusion: "success"}},
		checks:     []check{{ID: "9", Number: 9, ExternalID: "p-1", Status: "completed", Conclusion: "success", Title: "t", Summary: "s"}},
	}
}

// The checker of the invariants finds each of them broken, and nothing in what is sound.
func TestInvariantsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string
		spoil      func(*everything)
	}{
		{"nothing is wrong", "", func(*everything) {}},
		{"an acknowledged delivery has no event", "I-1", func(s *everything) { s.events = nil }},
		{"an event has no disposition", "I-1", func(s *everything) { s.events[0].Status.Disposition = "" }},
		{"a delivery has two events with runs", "I-1", func(s *everything) { s.events = append(s.events, s.events[0]) }},
		{"an ignored delivery has an event", "I-1", func(s *everything) { s.deliveries[0].code = 200 }},
		{"a delivery and pipeline have two runs", "I-2", func(s *everything) {
			s.runs["p-2"] = v1alpha1.Run{Pipeline: "p", Name: "p-2"}
			s.live = append(s.live, *s.live[0].DeepCopy())
			s.live[1].Name = "p-2"
		}},
		{"nobody planned a run", "I-2", func(s *everything) { s.live[0].Name = "x" }},
		{"a run was made a second time", "I-2", func(s *everything) { s.live[0].UID = "v" }},
		{"a failure was written and corrected", "I-3", func(s *everything) {
			s.writes = append([]write{{Conclusion: "failure", ExternalID: "p-1"}}, s.writes...)
		}},
		{"a success of a run that failed", "I-4", func(s *everything) {
			s.live[0].Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
		}},
		{"a terminal run has an open check", "I-5", func(s *everything) { s.checks[0].Status, s.checks[0].Conclusion = "in_progress", "" }},
		{"a run has no check", "I-5", func(s *everything) { s.checks = nil }},
		{"a run that waits does not say for what", "I-5", func(s *everything) {
			s.runs["p-1"], s.live = v1alpha1.Run{Pipeline: "p", Name: "p-1"}, nil
			s.writes, s.checks[0].Status, s.checks[0].Conclusion = nil, "queued", ""
		}},
		{"a completed check is reopened", "I-7", func(s *everything) {
			s.writes = append(s.writes, write{Applied: true, Check: "9", ExternalID: "p-1", Status: "in_progress"})
		}},
		{"a duplicate is left open", "I-8", func(s *everything) {
			s.checks = append([]check{{ID: "8", Number: 8, ExternalID: "p-1", Status: "in_progress"}}, s.checks...)
		}},
		{"the only check of a run is closed as superseded", "I-5", func(s *everything) {
			s.checks[0].Conclusion, s.checks[0].Title, s.checks[0].Replaced = "cancelled", "Superseded", true
		}},
		{"nothing is wrong where another run's status took the place on GitLab", "", func(s *everything) {
			s.checks[0].Conclusion, s.checks[0].Replaced, s.checks[0].Line = "cancelled", true, true
		}},
		{"a check of nothing", "I-8", func(s *everything) { s.checks = append(s.checks, check{ID: "10", Number: 10, ExternalID: "y"}) }},
	} {
		s := sound()
		c.spoil(s)
		err := errors.Join(s.accounted(), s.shown(), s.current(), s.once(), s.failures(), s.successes(), s.reopened())
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: found %v, want %q", c.what, err, c.want)
		}
	}
}
