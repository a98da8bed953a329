// SPDX-License-Identifier: Apache-2.0

package cel

import "github.com/plumbline-ci/plumbline/pkg/fault"

// ReasonSteps is the reason of the fault for an event whose expressions have exhausted its budget.
const ReasonSteps = "TooManySteps"

// EventSteps limits the total cost of the expressions and path filters of one event. Its steps take
// about five seconds at worst on one 2020s core, and ten on a slow one. Two hundred pipelines with
// twenty patterns each for 3000 files take a quarter of it.
const EventSteps = 10_000_000

// The costs that cel-go does not count. Compiling takes compileSteps, and compileStepsPerByte for
// each byte of the text. An evaluation takes at least evaluateSteps.
const (
	evaluateSteps       = 20
	compileSteps        = 200
	compileStepsPerByte = 20
)

// Budget is what the expressions of one event may still cost, in steps of less than a microsecond.
// A nil Budget has no limit. It is not safe for concurrent use.
type Budget struct{ left int }

// NewBudget allows a number of steps. An evaluation that exceeds them is interrupted, and later
// ones are refused.
func NewBudget(steps int) *Budget {
	return &Budget{left: steps}
}

// Spend subtracts steps. When no step is left, the error is a fault.Invalid with ReasonSteps.
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
