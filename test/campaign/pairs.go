// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// onceOfTwo is the name of a violation where a push and its pull request both run a pipeline.
const onceOfTwo = "pairs"

// pairOf returns the other delivery of the same push, "" if there is none.
func (r *repository) pairOf(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pairs[key]
}

// runsOf returns the pipelines of each delivery's runs. A run that a newer event cancelled before
// it was created counts unless created.
func runsOf(e *invariants.Evidence, created bool) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, event := range e.Events {
		key := event.Spec.DeliveryKey
		for _, run := range event.Status.Runs {
			if created && run.UID == "" {
				continue
			}
			if all[key] == nil {
				all[key] = map[string]bool{}
			}
			all[key][run.Pipeline] = true
		}
	}
	return all
}

// paired finds pipelines that run twice: for a push to a pull request, and for the pull request.
func (c *checker) paired(e *invariants.Evidence) (broken []invariants.Violation) {
	runs := runsOf(e, true)
	for _, r := range c.stage.repositories {
		r.mu.Lock()
		for own, pushed := range r.pairs {
			for pipeline := range runs[own] {
				if runs[pushed][pipeline] {
					broken = append(broken, invariants.Violated(onceOfTwo, own,
						"%s runs for the push of delivery %s and for the pull request of delivery %s", pipeline, pushed, own))
				}
			}
		}
		r.mu.Unlock()
	}
	return broken
}
