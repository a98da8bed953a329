// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"maps"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// wrongTenants is the name of a violation outside of docs/codes.md: an effect for one tenant is at
// another's.
const wrongTenants = "tenants"

// of returns the repository of a delivery, nil if the campaign has none.
func (s *stage) of(key string) (*repository, outcome) {
	for _, r := range s.repositories {
		if w, ours := r.outcomeOf(key); ours {
			return r, w
		}
	}
	return nil, either
}

// heads returns those of all repositories.
func (s *stage) heads() invariants.Heads {
	all := invariants.Heads{}
	for _, r := range s.repositories {
		r.mu.Lock()
		maps.Copy(all, r.heads)
		r.mu.Unlock()
	}
	return all
}

// redelivers reports whether a delivery without an answer, or with 503, is delivered again: the
// controller asks GitHub for that.
func (r *repository) redelivers() bool { return r.service == onGitHub }

// ignored is I-1 with the campaign's knowledge: a delivery with pipelines is recorded, also at the
// second attempt, and no event may say that it has none.
func (c *checker) ignored(e *invariants.Evidence) (broken []invariants.Violation) {
	records, runs := map[string]bool{}, runsOf(e, false)
	for _, event := range e.Events {
		key := event.Spec.DeliveryKey
		records[key] = true
		if r, wish := c.stage.of(key); wish == starts && startsNothing(&event.Status) && len(runs[r.pairOf(key)]) == 0 {
			broken = append(broken, invariants.Violated("I-1", key,
				"GitEvent %s is %s, and there are pipelines for it", event.Name, event.Status.Disposition))
		}
	}
	for _, d := range e.Deliveries {
		if r, wish := c.stage.of(d.Key); wish == starts && (d.Code/100 == 2 || r.redelivers()) && !records[d.Key] {
			broken = append(broken, invariants.Violated("I-1", d.Key,
				"delivery %s was answered %d and there is no record of it", d.Key, d.Code))
		}
	}
	return broken
}

// startsNothing reports whether an event ended without its pipelines for a reason that no act
// causes. A newer event, a command, and many kills during its reconciles may end it.
func startsNothing(s *v1alpha1.GitEventStatus) bool {
	never := []v1alpha1.Disposition{
		v1alpha1.DispositionIgnored, v1alpha1.DispositionRefused, v1alpha1.DispositionPending, v1alpha1.DispositionSkipped,
	}
	return slices.Contains(never, s.Disposition) && !gaveUp(s)
}

// gaveUp reports whether the planning of an event was given up because it did not end.
func gaveUp(s *v1alpha1.GitEventStatus) bool {
	return s.Plan != nil && s.Plan.Reason == planning.ReasonParked
}

// incomplete is I-1 for the pipelines of a push: each of them is planned, also when an input is
// unavailable at first.
func (c *checker) incomplete(e *invariants.Evidence) (broken []invariants.Violation) {
	for _, event := range e.Events {
		key, planned := event.Spec.DeliveryKey, len(event.Status.Runs)
		r, _ := c.stage.of(key)
		if r == nil || event.Status.Disposition != v1alpha1.DispositionRuns || planned >= r.countOf(key) {
			continue
		}
		broken = append(broken, invariants.Violated("I-1", event.Name,
			"of the %d pipelines of its push GitEvent %s has planned %d", r.countOf(key), event.Name, planned))
	}
	return broken
}

// startedWithoutReason is the reverse: a command of a user without the right, or one that only
// cancels, has neither a run nor a check of its own.
func (c *checker) startedWithoutReason(e *invariants.Evidence) (broken []invariants.Violation) {
	written := map[string]bool{}
	for _, w := range e.Writes {
		written[w.ExternalID] = true
	}
	for _, event := range e.Events {
		key, status := event.Spec.DeliveryKey, event.Status
		_, wish := c.stage.of(key)
		if wish != nothing && wish != noEffect || gaveUp(&status) {
			continue
		}
		starts := wish == noEffect && status.Disposition == v1alpha1.DispositionCancels || !slices.Contains(
			[]v1alpha1.Disposition{"", v1alpha1.DispositionIgnored, v1alpha1.DispositionCancels}, status.Disposition)
		if starts || len(status.Runs) > 0 || written[event.Name] {
			broken = append(broken, invariants.Violated("I-1", key,
				"GitEvent %s of what starts nothing is %s with %d runs, reported: %v", event.Name, status.Disposition,
				len(status.Runs), written[event.Name]))
		}
	}
	return broken
}

// wrongTenant returns effects for a tenant outside of its namespace and its projects.
func (c *checker) wrongTenant(e *invariants.Evidence) (broken []invariants.Violation) {
	whose := map[string]*repository{} // by the names of GitEvents and PipelineRuns
	for _, event := range e.Events {
		r, _ := c.stage.of(event.Spec.DeliveryKey)
		whose[event.Name] = r
		for _, run := range event.Status.Runs {
			whose[run.Name] = r
			if r != nil && run.Namespace != r.namespace {
				broken = append(broken, invariants.Violated(wrongTenants, run.Name, "run %s of %s is planned in namespace %s",
					run.Name, r.path, run.Namespace))
			}
		}
	}
	for _, run := range e.Made() {
		if r := whose[run.Name]; r != nil && run.Namespace != r.namespace {
			broken = append(broken, invariants.Violated(wrongTenants, run.Name, "PipelineRun %s of %s is in namespace %s",
				run.Name, r.path, run.Namespace))
		}
	}
	for _, w := range e.Writes {
		if r := whose[w.ExternalID]; r != nil && !slices.Contains(r.checksAt(), w.Repository) {
			broken = append(broken, invariants.Violated(wrongTenants, w.ExternalID,
				"write %d tells of %s at %s, and it is of %s", w.N, w.ExternalID, w.Repository, r.path))
		}
	}
	return broken
}

// both combines two Git services.
type both [2]service

// Deliveries implements invariants.Service.
func (b both) Deliveries() []invariants.Delivery {
	return slices.Concat(b[0].seen().Deliveries(), b[1].seen().Deliveries())
}

// Writes implements invariants.Service.
func (b both) Writes() []invariants.Write {
	return slices.Concat(b[0].seen().Writes(), b[1].seen().Writes())
}

// Checks implements invariants.Service.
func (b both) Checks(sha string) []invariants.Check {
	return slices.Concat(b[0].seen().Checks(sha), b[1].seen().Checks(sha))
}
