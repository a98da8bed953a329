// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Failed names what a call was for. Its text is the classified error's: client libraries and
// net/http put the URL, and some the time, in front of it. nil stays nil.
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
	// A fault in front of an answer says more than the answer's own.
	case errors.As(err, &answer) && errors.As(err, &f) && errors.Is(answer, f):
		return answer
	case errors.As(err, &f):
		return f
	}
	// Left are our own deadline and answers that are not what the API documents.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Transient, fault.ReasonCanceled, err)
	}
	return fault.New(fault.Transient, "BadAnswer", err)
}

// Said returns the service's own message in the answer that err is about.
func Said(err error) string {
	var answer *StatusError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.Message
}
