// SPDX-License-Identifier: Apache-2.0

package fault

import "regexp"

// Admission is an admission webhook or policy that caused a fault, with few possible values.
type Admission struct {
	// Name is the webhook's or the ValidatingAdmissionPolicy's, BuiltIn for the API server's own
	// plug-ins.
	Name string
	// Kind is one of the Admission constants.
	Kind string
}

// BuiltIn is the Admission.Name of the API server's own plug-ins (K15).
const BuiltIn = "built-in"

// The kinds of Admission.
const (
	// AdmissionRefused: nothing listens where the webhook should be (K1).
	AdmissionRefused = "refused"
	// AdmissionNoEndpoints: its Service has no ready pod (K2).
	AdmissionNoEndpoints = "no_endpoints"
	// AdmissionTimeout: it did not answer in time (K3).
	AdmissionTimeout = "timeout"
	// AdmissionExpired: its certificate is not valid now (K4).
	AdmissionExpired = "expired"
	// AdmissionUnknownAuthority: its certificate is not signed by the configuration's caBundle
	// (K4).
	AdmissionUnknownAuthority = "unknown_authority"
	// AdmissionDenied: it denied the object (K7, K10, K15).
	AdmissionDenied = "denied"
	// AdmissionFailed: it was reached and failed itself, or its denial echoes an outage (K8, K9).
	AdmissionFailed = "failed"
	// AdmissionOther: it could not be called for another reason, or its answer was not valid (K3,
	// K5, K6).
	AdmissionOther = "other"
)

// Admission returns the webhook or policy that caused the fault; ok is false for other faults.
func (e *Error) Admission() (found Admission, ok bool) {
	switch e.Reason {
	case ReasonWebhookUnavailable:
		found.Kind = uncalled(e.Message)
	case ReasonWebhookFailed, ReasonDenialEchoesOutage:
		found.Kind = AdmissionFailed
	case ReasonDenied:
		found.Kind = AdmissionDenied
	default:
		return Admission{}, false
	}
	if found.Name = WebhookName(e.Message); found.Name == "" {
		found.Name = policyName(e.Message)
	}
	return found, true
}

// uncalled returns why a webhook was not reached (K1 to K6).
func uncalled(text string) string {
	switch {
	case contains(text, "connection refused"):
		return AdmissionRefused
	case contains(text, "no endpoints available for service"):
		return AdmissionNoEndpoints
	case contains(text, "certificate has expired or is not yet valid"):
		return AdmissionExpired
	case contains(text, "signed by unknown authority"):
		return AdmissionUnknownAuthority
	case contains(text, "context deadline exceeded", "i/o timeout", "Client.Timeout exceeded",
		"TLS handshake timeout", "request canceled"):
		return AdmissionTimeout
	}
	return AdmissionOther
}

var policy = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)

func policyName(text string) string {
	if match := policy.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return BuiltIn
}
