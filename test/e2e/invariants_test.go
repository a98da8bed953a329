// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// invariants requires I-1 to I-5, I-7 and I-8 of spec/resilience.md of everything that happened in the world. Call it
// when faults are over: what has to become true is waited for, what must never have happened is looked for once.
func (w *world) invariants() {
	w.t.Helper()
	w.eventually(afterFault, "I-1, I-5 and I-8 hold", func() error {
		s := w.everything()
		return errors.Join(s.accounted(), s.shown(), s.current())
	})
	s := w.everything()
	if err := errors.Join(s.once(), s.failures(), s.successes(), s.reopened()); err != nil {
		w.t.Errorf("an invariant is broken:\n%v", err)
	}
}

// everything is the cluster and the forge at one moment, by the keys the invariants join them on.
type everything struct {
	events     []v1alpha1.GitEvent
	runs       map[string]v1alpha1.Run // planned, by PipelineRun name
	live       []pipelinev1.PipelineRun
	deliveries []delivered
	writes     []write
	checks     []check // oldest first
}

// everything reads the forge first: a check must not be newer than the run it tells of.
func (w *world) everything() *everything {
	w.t.Helper()
	log := w.git.log()
	s := &everything{runs: map[string]v1alpha1.Run{}, deliveries: log.deliveries, writes: log.writes}
	seen := map[string]bool{"": true}
	for _, write := range s.writes {
		if !seen[write.SHA] {
			seen[write.SHA] = true
			s.checks = append(s.checks, w.git.checks(write.SHA)...)
		}
	}
	list, err := w.Tekton.TektonV1().PipelineRuns("").List(w.ctx, metav1.ListOptions{LabelSelector: plumbline.InstallationLabel + "=" + w.Namespace})
	w.must(err)
	s.live, s.events = list.Items, w.events()
	names := map[string]string{}
	for _, event := range s.events {
		names[digestOf(event.Name)] = event.Name
		for _, run := range event.Status.Runs {
			s.runs[run.Name] = run
			names[digestOf(run.Name)] = run.Name
		}
	}
	for i := range s.writes {
		s.writes[i].ExternalID = cmp.Or(names[s.writes[i].ExternalID], s.writes[i].ExternalID)
	}
	for i := range s.checks {
		s.checks[i].ExternalID = cmp.Or(names[s.checks[i].ExternalID], s.checks[i].ExternalID)
	}
	return s
}

// digestOf is the external id of a check whose service keeps only a digest.
func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return digested + hex.EncodeToString(sum[:16])
}

// accounted is I-1: every delivery that was acknowledged as recorded has its event, with a disposition, and of several
// records of one delivery at most one has runs. One that was only ever ignored has none.
func (s *everything) accounted() (broken error) {
	for guid, recorded := range s.acknowledged() {
		records, withRuns := 0, 0
		for _, event := range s.events {
			if event.Spec.DeliveryKey != guid {
				continue
			}
			records++
			if event.Status.Disposition == "" {
				broken = errors.Join(broken, fmt.Errorf("I-1: GitEvent %s has no disposition; it waits: %v", event.Name, event.Status.Waits))
			}
			if slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return run.UID != "" }) {
				withRuns++
			}
		}
		if (records > 0) != recorded || withRuns > 1 {
			broken = errors.Join(broken, fmt.Errorf("I-1: delivery %s, answered as recorded: %v, has %d GitEvents, %d with runs", guid, recorded, records, withRuns))
		}
	}
	return broken
}

// acknowledged maps the deliveries that got only answers of 2xx, or one 202, to whether one was 202.
func (s *everything) acknowledged() map[string]bool {
	answers := map[string][]int{}
	for _, d := range s.deliveries {
		answers[d.key] = append(answers[d.key], d.code)
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

// once is I-2: at most one PipelineRun for each delivery and pipeline, each planned by an event, and the one that the
// event remembers.
func (s *everything) once() (broken error) {
	deliveries := map[string]string{}
	for _, event := range s.events {
		deliveries[event.Name] = event.Spec.DeliveryKey
	}
	made := map[string]string{}
	for _, run := range s.live {
		delivery, known := deliveries[run.Labels[plumbline.EventLabel]]
		planned, ours := s.runs[run.Name]
		if !known || !ours {
			broken = errors.Join(broken, fmt.Errorf("I-2: no GitEvent has planned PipelineRun %s/%s", run.Namespace, run.Name))
			continue
		}
		if planned.UID != "" && planned.UID != run.UID {
			broken = errors.Join(broken, fmt.Errorf("I-2: PipelineRun %s/%s was made a second time", run.Namespace, run.Name))
		}
		key := delivery + " " + planned.Pipeline
		if other := made[key]; other != "" {
			broken = errors.Join(broken, fmt.Errorf("I-2: delivery and pipeline %s have the PipelineRuns %s and %s", key, other, run.Name))
		}
		made[key] = run.Name
	}
	return broken
}

// failures is I-3, over every write the forge was ever sent.
func (s *everything) failures() (broken error) {
	for _, write := range s.writes {
		if write.Conclusion != "failure" {
			continue
		}
		run, planned := s.runs[write.ExternalID]
		if !planned || (run.Refused == nil && s.succeeded(run) != corev1.ConditionFalse) {
			broken = errors.Join(broken, fmt.Errorf("I-3: write %d says failure of %q (%s), which was not refused and is %q", write.N, write.Name, write.ExternalID, s.succeeded(run)))
		}
	}
	return broken
}

// successes is I-4, over every write the forge was ever sent.
func (s *everything) successes() (broken error) {
	for _, write := range s.writes {
		if write.Conclusion != "success" && write.Conclusion != "neutral" {
			continue
		}
		if run, planned := s.runs[write.ExternalID]; !planned || s.succeeded(run) != corev1.ConditionTrue {
			broken = errors.Join(broken, fmt.Errorf("I-4: write %d says %s of %q (%s), which is %q", write.N, write.Conclusion, write.Name, write.ExternalID, s.succeeded(run)))
		}
	}
	return broken
}

// reopened is I-7: nothing that took effect on a completed check left it open.
func (s *everything) reopened() (broken error) {
	completed := map[string]bool{}
	for _, write := range s.writes {
		if !write.Applied || write.Check == "" {
			continue
		}
		if completed[write.Check] && write.Conclusion == "" && write.Status != "" {
			broken = errors.Join(broken, fmt.Errorf("I-7: write %d reopens check %s %q", write.N, write.Check, write.Name))
		}
		completed[write.Check] = completed[write.Check] || write.Conclusion != ""
	}
	return broken
}

// succeeded is the Succeeded condition a planned run ended with, Unknown while it has not.
func (s *everything) succeeded(run v1alpha1.Run) corev1.ConditionStatus {
	for i := range s.live {
		if s.live[i].Name == run.Name && s.live[i].UID == run.UID {
			if condition := s.live[i].Status.GetCondition(apis.ConditionSucceeded); condition != nil {
				return condition.Status
			}
			return corev1.ConditionUnknown
		}
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
