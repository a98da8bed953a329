// SPDX-License-Identifier: Apache-2.0

// Package fault gives every error one class. A class is set where the error arises and read in one
// function, backoff.Requeue. The classes are those of docs/errors.md.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Class says what happens after an error.
type Class int

const (
	// Transient is the zero value: retried with the workqueue's backoff (network, 5xx, failed
	// webhook calls, quota).
	Transient Class = iota
	// Throttled is retried at a known time.
	Throttled
	// Conflict is retried after reading again.
	Conflict
	// Operator needs a change by an administrator of the cluster or of the repository's settings:
	// it is retried slowly and shown in a condition.
	Operator
	// Invalid is a mistake in the author's text: stop and tell the author.
	Invalid
	// Ignored means that there is nothing to do: stop without a report.
	Ignored
)

// String returns the class's name as written to GitEvent.status.
func (c Class) String() string {
	return [...]string{"Transient", "Throttled", "Conflict", "Operator", "Invalid", "Ignored"}[c]
}

// OperatorRetry is when a step is retried after an Operator fault. Retrying faster does not help,
// and nothing wakes it earlier.
const OperatorRetry = 5 * time.Minute

// Error is an error with its class.
type Error struct {
	Class Class
	// Reason is a CamelCase word, stable across retries. Conditions and metrics use it.
	Reason string
	// Message is for people: stable across retries, free of secrets, times and counters.
	Message string
	// Remedy says what to do if Message is the API server's and does not say so; else it is empty.
	Remedy string
	// RetryAfter is the known wait from now; 0 when the workqueue's backoff decides. Set for
	// Throttled.
	RetryAfter time.Duration
	// Unknown is true when a write may have been applied although it failed ("outcome unknown" in
	// docs/errors.md).
	Unknown bool
	cause   error
	// believed is the class of a denial once it is accepted; see Believe.
	believed Class
}

// Error returns Message, which includes the cause.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that was classified, if any.
func (e *Error) Unwrap() error { return e.cause }

// Advice returns Message with Remedy: the sentence for users (docs/errors.md).
func (e *Error) Advice() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + ": " + e.Remedy
}

// Reworded returns the fault with another message and without its cause, whose text must not be
// repeated.
func (e *Error) Reworded(message string) *Error {
	reworded := *e
	reworded.Message, reworded.cause = message, nil
	return &reworded
}

// AsTransient returns a Transient fault with the reason and the message, without the cause. The
// workqueue retries it with its backoff, whatever refused the call (docs/adr/0003).
func (e *Error) AsTransient() *Error { return Transientf(e.Reason, "%s", e.Message) }

// New classifies an error; the message is the cause's.
func New(class Class, reason string, cause error) *Error {
	return &Error{Class: class, Reason: reason, Message: cause.Error(), cause: cause}
}

// Transientf returns a Transient fault.
func Transientf(reason, format string, args ...any) *Error {
	return makef(Transient, reason, format, args)
}

// Throttledf returns a Throttled fault that is retried after wait.
func Throttledf(reason string, wait time.Duration, format string, args ...any) *Error {
	e := makef(Throttled, reason, format, args)
	e.RetryAfter = wait
	return e
}

// Operatorf returns an Operator fault; say what to do in the message.
func Operatorf(reason, format string, args ...any) *Error {
	return makef(Operator, reason, format, args)
}

// Invalidf returns an Invalid fault; name the file, line or field and what to do.
func Invalidf(reason, format string, args ...any) *Error {
	return makef(Invalid, reason, format, args)
}

// Ignoredf returns an Ignored fault; the message says why nothing is done.
func Ignoredf(reason, format string, args ...any) *Error {
	return makef(Ignored, reason, format, args)
}

func makef(class Class, reason, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Reason: reason, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Rejected reports whether the Git service does not accept what it was sent (ReasonGitRejected).
// That is about this one call, not about the next.
func Rejected(err error) bool {
	f := Of(err)
	return f != nil && f.Reason == ReasonGitRejected
}

// Of returns the fault in err's chain, with the message of the whole chain. If there is none, it
// returns a Transient fault with reason "Error", because unclassified errors are retried and never
// a verdict. Of(nil) is nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var found *Error
	if !errors.As(err, &found) {
		return &Error{Class: Transient, Reason: "Error", Message: err.Error(), cause: err}
	}
	whole := *found
	whole.Message = err.Error()
	whole.cause = err
	return &whole
}

// Is reports whether err's class is class. It is false for nil.
func Is(err error, class Class) bool {
	f := Of(err)
	return f != nil && f.Class == class
}

// Among returns an error with the message and the class of the first error. For backoff.Requeue
// each of them counts.
func Among(first error, others ...error) error {
	if len(others) == 0 {
		return first
	}
	if classified := (*Error)(nil); !errors.As(first, &classified) {
		first = Of(first) // otherwise the class would be another error's
	}
	return among{first, append([]error{first}, others...)}
}

type among struct {
	error
	all []error
}

// Unwrap returns all of them, in order.
func (a among) Unwrap() []error { return a.all }
