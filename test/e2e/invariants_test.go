// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	"github.com/plumbline-ci/plumbline/test/invariants"
)

// requireInvariants requires I-1 to I-5, I-7 and I-8 of docs/codes.md of everything that happened
// in the environment. Call it when faults are over. It waits for what must become true, and checks
// once what must never have happened.
func (env *environment) requireInvariants() {
	env.t.Helper()
	env.eventually(afterFault, "I-1, I-5 and I-8 hold",
		func() error { return joinViolations(env.evidence().Eventually()) })
	if err := joinViolations(env.evidence().Never()); err != nil {
		env.t.Errorf("an invariant is broken:\n%v", err)
	}
}

func joinViolations(violations []invariants.Violation) (all error) {
	for _, v := range violations {
		all = errors.Join(all, v)
	}
	return all
}

// evidence returns the state of the cluster and the Git service at one moment.
func (env *environment) evidence() *invariants.Evidence {
	env.t.Helper()
	e, err := invariants.Read(env.ctx, serviceEvidence{env.git}, env.Installation)
	env.must(err)
	return e
}

// serviceEvidence is the environment's Git service as the invariants read it.
type serviceEvidence struct{ git service }

func (s serviceEvidence) Deliveries() []invariants.Delivery    { return s.git.log().deliveries }
func (s serviceEvidence) Writes() []invariants.Write           { return s.git.log().writes }
func (s serviceEvidence) Checks(sha string) []invariants.Check { return s.git.checks(sha) }
