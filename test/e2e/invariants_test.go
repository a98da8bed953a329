// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	"github.com/plumbline-ci/plumbline/test/invariants"
)

// invariants requires I-1 to I-5, I-7 and I-8 of docs/codes.md of everything that happened in the
// world. Call it when faults are over: what has to become true is waited for, what must never have
// happened is looked for once.
func (w *world) invariants() {
	w.t.Helper()
	w.eventually(afterFault, "I-1, I-5 and I-8 hold", func() error { return joined(w.everything().Eventually()) })
	if err := joined(w.everything().Never()); err != nil {
		w.t.Errorf("an invariant is broken:\n%v", err)
	}
}

func joined(violations []invariants.Violation) (all error) {
	for _, v := range violations {
		all = errors.Join(all, v)
	}
	return all
}

// everything is the cluster and the Git service at one moment.
func (w *world) everything() *invariants.Evidence {
	w.t.Helper()
	e, err := invariants.Read(w.ctx, seen{w.git}, w.Installation)
	w.must(err)
	return e
}

// seen is the world's Git service as the invariants read it.
type seen struct{ git service }

func (s seen) Deliveries() []invariants.Delivery    { return s.git.log().deliveries }
func (s seen) Writes() []invariants.Write           { return s.git.log().writes }
func (s seen) Checks(sha string) []invariants.Check { return s.git.checks(sha) }
