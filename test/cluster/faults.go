// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The answers that a real API server gives, by the K numbers of the error
// catalogue. Use them with Fault, Answer and ApplyThenAnswer.

const (
	defaultingWebhook = "webhook.pipeline.tekton.dev"
	validationWebhook = "validation.webhook.pipeline.tekton.dev"
	webhookURL        = "https://tekton-pipelines-webhook.tekton-pipelines.svc:443"
)

// WebhookRefused is K1: nothing listens where the admission webhook should be.
func WebhookRefused() metav1.Status {
	return webhookFailed(defaultingWebhook,
		`Post "`+webhookURL+`/defaulting?timeout=10s": dial tcp 10.96.0.1:443: connect: connection refused`)
}

// WebhookTimeout is K3: the admission webhook does not answer in time.
func WebhookTimeout() metav1.Status {
	return webhookFailed(defaultingWebhook, `Post "`+webhookURL+`/defaulting?timeout=10s": context deadline exceeded`)
}

// WebhookDenied is K7: the admission webhook judged the object, as Tekton's
// does: the code is 400 and the reason BadRequest.
func WebhookDenied(why string) metav1.Status {
	return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest,
		fmt.Sprintf("admission webhook %q denied the request: %s", validationWebhook, why), nil)
}

// PolicyDenied is K10: a ValidatingAdmissionPolicy refused a PipelineRun.
func PolicyDenied(name, policy, why string) metav1.Status {
	because := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, policy, why)
	return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		fmt.Sprintf("pipelineruns.tekton.dev %q is forbidden: %s", name, because),
		details(name, metav1.StatusCause{Message: because}))
}

// Forbidden is K12: RBAC does not allow the user to do verb with PipelineRuns.
func Forbidden(user, verb, namespace string) metav1.Status {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
		"pipelineruns.tekton.dev is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q",
		user, verb, "pipelineruns", "tekton.dev", namespace), details(""))
}

// QuotaExceeded is K13: the namespace may not have more PipelineRuns.
func QuotaExceeded(name string) metav1.Status {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
		"pipelineruns.tekton.dev %q is forbidden: exceeded quota: runs, requested: count/pipelineruns.tekton.dev=1, "+
			"used: count/pipelineruns.tekton.dev=1, limited: count/pipelineruns.tekton.dev=1", name), details(name))
}

// NamespaceMissing is K18: the namespace that something was to be created in does not exist.
func NamespaceMissing(name string) metav1.Status {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("namespaces %q not found", name),
		&metav1.StatusDetails{Kind: "namespaces", Name: name})
}

// Conflict is K21: another client changed the object since it was read.
func Conflict(name string) metav1.Status {
	return failure(http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf(
		"Operation cannot be fulfilled on pipelineruns.tekton.dev %q: the object has been modified; "+
			"please apply your changes to the latest version and try again", name), details(name))
}

// EtcdTimeout is K24. Its reason is empty, and the write may have landed.
func EtcdTimeout() metav1.Status {
	return failure(http.StatusInternalServerError, "", "etcdserver: request timed out", nil)
}

// RequestTimeout is K28. The write may have landed.
func RequestTimeout() metav1.Status {
	return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		"Timeout: request did not complete within requested timeout - context deadline exceeded", &metav1.StatusDetails{})
}

// TooManyRequests is K29, with Retry-After: 1.
func TooManyRequests() metav1.Status {
	return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"the server has received too many requests and has asked us to try again later",
		&metav1.StatusDetails{RetryAfterSeconds: 1})
}

// Unavailable is K30.
func Unavailable() metav1.Status {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the server is currently unable to handle the request", nil)
}

// Unauthorized is K32.
func Unauthorized() metav1.Status {
	return failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
}

// RunStarted is K37: Tekton refuses changes to the spec of a started run.
func RunStarted() metav1.Status {
	return WebhookDenied(
		"validation failed: invalid value: Once the PipelineRun has started, only status updates are allowed: spec")
}

// webhookFailed is the API server's answer when it could not call a webhook.
func webhookFailed(webhook, why string) metav1.Status {
	because := fmt.Sprintf("failed calling webhook %q: failed to call webhook: %s", webhook, why)
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"Internal error occurred: "+because,
		&metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: because}}})
}

func details(name string, causes ...metav1.StatusCause) *metav1.StatusDetails {
	return &metav1.StatusDetails{Group: "tekton.dev", Kind: "pipelineruns", Name: name, Causes: causes}
}

func failure(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     code,
		Reason:   reason,
		Message:  message,
		Details:  details,
	}
}
