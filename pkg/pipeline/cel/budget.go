// SPDX-License-Identifier: Apache-2.0

package cel

import "github.com/plumbline-ci/plumbline/pkg/fault"

// ReasonSteps is the reason of the fault that an event's expressions end with once they have cost
// too much together.
const ReasonSteps = "TooManySteps"

// EventSteps bounds what the expressions and path filters of one event may cost together: about
// five seconds at worst on one 2020s core, ten on a slow one. Two hundred pipelines with twenty
// patterns each for 3000 files take a quarter of it.
const EventSteps = 10_000_000

// What is not counted while an expression is evaluated: compiling takes compileSteps, and
// compileStepsPerByte for each byte of the text; an evaluation takes evaluateSteps at least.
const (
	evaluateSteps       = 20
	compileSteps        = 200
	compileStepsPerByte = 20
)

// Budget is what the expressions of one event may still cost, in steps of less than a microsecond.
// Nil is no limit. It is not safe for use by several goroutines.
type Budget struct{ left int }

// NewBudget allows a number of steps. What exceeds them ends; what comes after is refused.
func NewBudget(steps int) *Budget {
	return &Budget{left: steps}
}

// Spend takes steps off. The error is a fault.Invalid with ReasonSteps once nothing is left.
func (b *Budget) Spend(steps int) error {
	if b == nil {
		return nil
	}
	if b.left <= 0 {
		return fault.Invalidf(
			ReasonSteps,
			"the expressions and path filters of the pipelines for this event take too many steps together: "+
				"use fewer of them, shorter ones, or shorter lists",
		)
	}
	b.left -= steps
	return nil
}
