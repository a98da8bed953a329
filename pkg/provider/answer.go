// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Failed adds what a call was for to its error. The text is that of the classified error, because
// client libraries and net/http add the URL to it, and some the time. nil stays nil.
func Failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, classified(err))
}

func classified(err error) error {
	var f *fault.Error
	var answer *StatusError
	switch {
	// A fault that wraps an answer says more than the answer's own.
	case errors.As(err, &answer) && errors.As(err, &f) && errors.Is(answer, f):
		return answer
	case errors.As(err, &f):
		return f
	}
	// What remains is our own deadline, or an answer that the API does not document.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Transient, fault.ReasonCanceled, err)
	}
	return fault.New(fault.Transient, ReasonBadAnswer, err)
}

// Message returns the service's own message in the answer that err wraps.
func Message(err error) string {
	var answer *StatusError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.Message
}
