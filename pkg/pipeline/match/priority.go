// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

// maxPriorityText is how long an expression of a Repository may be, in bytes. Every event compiles
// it, and compiling a long expression takes a second.
const maxPriorityText = 4096

// Priority evaluates an expression of a Repository that gives an event its position in the queue,
// from -v1alpha1.MaxPriority to v1alpha1.MaxPriority. A value beyond that is capped, and note says
// so. The error is a fault.Invalid, or *template.Unknown while a value that the expression depends
// on is unknown. No text holds a secret.
func Priority(ev Event, text string) (priority int32, note string, err error) {
	program, err := wholeNumber(text, ev.Params.Compile)
	if err != nil {
		return 0, "", ev.Params.Conceal(err)
	}
	outcome, err := evaluate(ev, program)
	if err != nil {
		return 0, "", ev.Params.Conceal(err)
	}
	value, err := outcome.Int()
	if err != nil {
		return 0, "", err
	}
	capped := max(-v1alpha1.MaxPriority, min(v1alpha1.MaxPriority, value))
	if capped != value {
		note = fmt.Sprintf("it is beyond %d, and counts as that", capped) // the number itself may be a secret param
	}
	return int32(capped), note, nil //nolint:gosec // it is bounded
}

// CheckPriority compiles a priority expression for Repositories with these params, before there is
// an event. The error is a fault.Invalid.
func CheckPriority(text string, params []string) error {
	environment, err := cel.ForMatching(params)
	if err != nil {
		return err
	}
	_, err = wholeNumber(text, environment.Compile)
	return err
}

// wholeNumber compiles an expression that has to yield a whole number.
func wholeNumber(text string, compile func(string) (*cel.Program, error)) (*cel.Program, error) {
	if len(text) > maxPriorityText {
		return nil, fault.Invalidf(cel.ReasonBad, "the expression has more than %d bytes", maxPriorityText)
	}
	program, err := compile(text)
	if err == nil && !program.Integer() {
		err = fault.Invalidf(cel.ReasonBad,
			"1:1: the expression does not give a whole number: write a condition as event == \"pull_request\" ? 10 : 0")
	}
	return program, err
}
