// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is one Status of the API server, and the verb of its request.
type answer struct {
	verb   Verb
	err    error
	status metav1.Status
	text   string
}

func (a *answer) classify() *Error {
	code := a.status.Code
	if code == 0 && a.status.Reason != "" {
		code = codeOf(a.status.Reason)
	}
	switch {
	case a.unexpected():
		return a.page(code)
	case code >= http.StatusInternalServerError:
		return a.serverError(code)
	case code == http.StatusTooManyRequests:
		return a.throttled()
	case code == http.StatusRequestTimeout:
		return a.make(Transient, ReasonTimeout, a.verb.writes())
	case isDenial(a.text) || a.verb == VerbDryRun && isNoDryRun(a.text):
		return a.denied()
	}
	return a.clientError(code)
}

// serverError: K1 to K6, K8, K14, K24 to K28, K30. Only K27 is not transient.
func (a *answer) serverError(code int32) *Error {
	known := a.status.Reason != metav1.StatusReasonUnknown
	switch {
	case isDenial(a.text):
		return a.make(Transient, ReasonWebhookFailed, false)
	case !known && isTooLarge(a.text):
		return a.make(a.author(), ReasonTooLarge, false)
	case isWebhookCall(a.text):
		return a.make(Transient, ReasonWebhookUnavailable, isUndecided(a.text) && a.verb.writes())
	case !known && isStoreFull(a.text):
		return a.make(Transient, ReasonStoreFull, false)
	case a.status.Reason == metav1.StatusReasonServerTimeout, code == http.StatusGatewayTimeout:
		return a.timeout()
	case a.status.Reason == metav1.StatusReasonServiceUnavailable:
		return a.make(Transient, ReasonUnavailable, false)
	}
	return a.make(Transient, ReasonUnavailable, a.verb.writes())
}

// timeout: K25, which names a wait, and K28.
func (a *answer) timeout() *Error {
	if wait := a.retryAfter(); a.status.Reason == metav1.StatusReasonServerTimeout && wait > 0 {
		return a.wait(ReasonThrottled, wait, a.verb.writes())
	}
	return a.make(Transient, ReasonTimeout, a.verb.writes())
}

// throttled: K29, and K8 with code 429.
func (a *answer) throttled() *Error {
	if isDenial(a.text) {
		return a.make(Transient, ReasonWebhookFailed, false)
	}
	if wait := a.retryAfter(); wait > 0 {
		return a.wait(ReasonThrottled, wait, false)
	}
	return a.make(Transient, ReasonThrottled, false)
}

// denied: K7, K9, K10, K37, K38.
func (a *answer) denied() *Error {
	updates := a.verb == VerbUpdate || a.verb == VerbPatch
	switch {
	case !isDenial(a.text):
		return a.make(Ignored, ReasonNoDryRun, false)
	case updates && isStarted(a.text):
		return a.make(Conflict, ReasonAlreadyStarted, false)
	case updates && isComplete(a.text):
		return a.make(Conflict, ReasonAlreadyComplete, false)
	}
	return a.judged()
}

// judged returns the fault for a denial, which is accepted unless it echoes an outage.
func (a *answer) judged() *Error {
	if !echoesOutage(a.text) {
		return a.make(a.author(), ReasonDenied, false)
	}
	f := a.make(Transient, ReasonDenialEchoesOutage, false)
	f.believed = a.author()
	return f
}

// clientError: the 4xx that are not from an admission webhook or policy.
func (a *answer) clientError(code int32) *Error {
	switch code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return a.make(a.author(), ReasonInvalid, false)
	case http.StatusRequestEntityTooLarge:
		return a.make(a.author(), ReasonTooLarge, false)
	case http.StatusUnauthorized:
		return a.make(Transient, ReasonUnauthorized, false)
	case http.StatusForbidden:
		return a.forbidden()
	case http.StatusNotFound:
		return a.notFound()
	case http.StatusConflict:
		return a.conflict()
	case http.StatusGone:
		return a.make(Transient, ReasonExpired, false)
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return a.make(Operator, ReasonNotSupported, false)
	}
	return a.make(Transient, ReasonUnknownCode, a.verb.writes())
}

// forbidden: K12, K13, K15, K16, K17. A 403 with another reason than the API server's own never
// blames the author.
func (a *answer) forbidden() *Error {
	switch {
	case apierrors.HasStatusCause(a.err, corev1.NamespaceTerminatingCause):
		return a.make(Operator, ReasonNamespaceTerminating, false)
	case isQuota(a.text):
		return a.wait(ReasonQuota, QuotaRetry, false)
	case isNotReady(a.text):
		return a.make(Transient, ReasonUnavailable, false)
	case isRBAC(a.text), a.status.Reason != metav1.StatusReasonForbidden:
		return a.make(Operator, ReasonForbidden, false)
	}
	return a.judged()
}

// notFound: K18, K19, K20.
func (a *answer) notFound() *Error {
	details := a.status.Details
	unserved := details == nil || details.Kind == "" || a.unexpected()
	switch {
	case !unserved && details.Kind == "namespaces":
		return a.make(Operator, ReasonNamespaceMissing, false)
	case unserved, a.verb.judges():
		return a.make(Operator, ReasonNotServed, false)
	}
	return a.make(Transient, ReasonNotFound, false)
}

// conflict: K14, K21, K22, K23.
func (a *answer) conflict() *Error {
	if a.status.Reason == metav1.StatusReasonAlreadyExists {
		return a.make(Transient, ReasonAlreadyExists, false)
	}
	return a.make(Conflict, ReasonConflict, false)
}

// author returns the class of a refusal that is about the object's text.
func (a *answer) author() Class {
	if a.verb.judges() {
		return Invalid
	}
	return Operator
}

func (a *answer) retryAfter() time.Duration {
	if a.status.Details == nil {
		return 0
	}
	return time.Duration(a.status.Details.RetryAfterSeconds) * time.Second
}

func (a *answer) make(class Class, reason string, unknown bool) *Error {
	return &Error{Class: class, Reason: reason, Message: stable(a.text), Unknown: unknown, cause: a.err}
}

func (a *answer) wait(reason string, after time.Duration, unknown bool) *Error {
	f := a.make(Throttled, reason, unknown)
	f.RetryAfter = after
	return f
}

// codeOf returns the code of a Status that has a reason only (fakes and old servers).
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonNotFound:
		return http.StatusNotFound
	case metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict:
		return http.StatusConflict
	case metav1.StatusReasonInvalid:
		return http.StatusUnprocessableEntity
	case metav1.StatusReasonBadRequest:
		return http.StatusBadRequest
	case metav1.StatusReasonGone, metav1.StatusReasonExpired:
		return http.StatusGone
	case metav1.StatusReasonTooManyRequests:
		return http.StatusTooManyRequests
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}
