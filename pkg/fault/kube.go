// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Verb is the verb of a request to the API server: the class of an answer depends on it.
type Verb string

// The verbs. VerbRead is get, list and watch; VerbDryRun is a create with dryRun=All.
const (
	VerbCreate Verb = "create"
	VerbDryRun Verb = "dry-run"
	VerbRead   Verb = "read"
	VerbUpdate Verb = "update"
	VerbPatch  Verb = "patch"
	VerbDelete Verb = "delete"
)

// judges reports whether a refusal of this verb is about the author's text.
func (v Verb) judges() bool { return v == VerbCreate || v == VerbDryRun }

// writes reports whether a request that got no answer may have been applied.
func (v Verb) writes() bool { return v != VerbRead && v != VerbDryRun }

// QuotaRetry is when a create is retried after an exhausted ResourceQuota (K13): scenario C5 allows
// two minutes.
const QuotaRetry = time.Minute

// FromKube classifies an answer of the API server as docs/errors.md says: by its code, then its
// reason, then its text. It returns nil for nil. The message is the API server's own, without the
// parts that vary between attempts. Errors that have a class keep it.
//
// Callers test for AlreadyExists and NotFound on err itself. This function makes them Transient,
// except for K18 and K19 of docs/errors.md. Tekton's two denials because of a run's state (K37) are
// Conflict with reason AlreadyStarted or AlreadyComplete: read the run again and decide from its
// state. They are never a verdict.
func FromKube(verb Verb, err error) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return Of(err)
	}
	f := classify(verb, err)
	f.Remedy = f.remedy()
	return f
}

func classify(verb Verb, err error) *Error {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return fromTransport(verb, err)
	}
	a := answer{verb: verb, err: err, status: api.Status(), text: err.Error()}
	return a.classify()
}

// AsOwn makes a refusal an Operator fault if it would blame the author. It is for objects that the
// author did not write.
func (e *Error) AsOwn() *Error {
	if e.Class == Invalid {
		e.Class, e.Remedy = Operator, ""
	}
	return e
}

// Believe accepts a denial that echoes an outage, which callers do after 10 minutes (C11): it
// becomes Invalid if it is about the author's text, else Operator. Other faults do not change.
func (e *Error) Believe() *Error {
	if e == nil || e.Reason != ReasonDenialEchoesOutage {
		return e
	}
	believed := *e
	believed.Class, believed.Reason = e.believed, ReasonDenied
	return &believed
}

// fromTransport: K35 and K36, no answer at all.
func fromTransport(verb Verb, err error) *Error {
	reason := ReasonUnreachable
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		reason = ReasonCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		reason = ReasonTimeout
	}
	return &Error{Class: Transient, Reason: reason, Message: stable(err.Error()), Unknown: verb.writes(), cause: err}
}
