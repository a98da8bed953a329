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
	// Operator needs someone who runs the cluster or the repository's settings: slow retry and a
	// condition.
	Operator
	// Invalid is the author's text being wrong, before or at Create: stop and tell the author.
	Invalid
	// Ignored is nothing to do: stop quietly.
	Ignored
)

// String returns the class's name as written to GitEvent.status.
func (c Class) String() string {
	return [...]string{"Transient", "Throttled", "Conflict", "Operator", "Invalid", "Ignored"}[c]
}

// OperatorRetry is how long an Operator fault waits: acting faster does not help, and nobody wakes
// it.
const OperatorRetry = 5 * time.Minute

// Error is an error with its class.
type Error struct {
	Class Class
	// Reason is one CamelCase word, stable across retries: it becomes a condition's reason and a
	// metric's label.
	Reason string
	// Message is for people: stable across retries, free of secrets, times and counters.
	Message string
	// Remedy is what somebody has to do where Message is the API server's and does not say it; else
	// empty.
	Remedy string
	// RetryAfter is the known wait from now; 0 when the workqueue's backoff decides. Set for
	// Throttled.
	RetryAfter time.Duration
	// Unknown is true when a write may have been applied although it failed ("outcome unknown" in
	// docs/errors.md).
	Unknown bool
	cause   error
	// believed is the class a denial has once it is believed; see Believe.
	believed Class
}

// Error returns Message, which names the cause already.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that was classified, if any.
func (e *Error) Unwrap() error { return e.cause }

// Advice is Message and what has to be done about it: the sentence that people read
// (docs/errors.md).
func (e *Error) Advice() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + ": " + e.Remedy
}

// Reworded returns the fault with another message and without the error it classified, whose words
// must not be repeated.
func (e *Error) Reworded(message string) *Error {
	reworded := *e
	reworded.Message, reworded.cause = message, nil
	return &reworded
}

// New classifies an error; the message is the cause's own words.
func New(class Class, reason string, cause error) *Error {
	return &Error{Class: class, Reason: reason, Message: cause.Error(), cause: cause}
}

// Transientf makes a Transient fault.
func Transientf(reason, format string, args ...any) *Error {
	return makef(Transient, reason, format, args)
}

// Throttledf makes a Throttled fault that is retried after wait.
func Throttledf(reason string, wait time.Duration, format string, args ...any) *Error {
	e := makef(Throttled, reason, format, args)
	e.RetryAfter = wait
	return e
}

// Operatorf makes an Operator fault; say what to do in the message.
func Operatorf(reason, format string, args ...any) *Error {
	return makef(Operator, reason, format, args)
}

// Invalidf makes an Invalid fault; name the file, line or field and what to do.
func Invalidf(reason, format string, args ...any) *Error {
	return makef(Invalid, reason, format, args)
}

// Ignoredf makes an Ignored fault; the message is the reason an event is not acted on.
func Ignoredf(reason, format string, args ...any) *Error {
	return makef(Ignored, reason, format, args)
}

func makef(class Class, reason, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Reason: reason, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Rejected reports whether the Git service does not accept what it was sent (ReasonGitRejected):
// that is about this one call, and says nothing of the next.
func Rejected(err error) bool {
	f := Of(err)
	return f != nil && f.Reason == ReasonGitRejected
}

// Of returns the fault in err's chain with the whole chain's message, or a Transient one with
// reason "Error": whatever was not classified is retried and concludes nothing. Of(nil) is nil.
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

// Among returns an error with the words and the class of the first one, of which each counts for
// backoff.Requeue.
func Among(first error, others ...error) error {
	if len(others) == 0 {
		return first
	}
	if classified := (*Error)(nil); !errors.As(first, &classified) {
		first = Of(first) // else the class would be another one's
	}
	return among{first, append([]error{first}, others...)}
}

type among struct {
	error
	all []error
}

// Unwrap returns all of them, the first one first.
func (a among) Unwrap() []error { return a.all }
