// SPDX-License-Identifier: Apache-2.0

package fault

import "testing"

// What stands in the way of a call is told by name and kind from the words of the API server (K1 to
// K10, K15).
func TestAdmission(t *testing.T) {
	const called = `Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.ns.svc:443/x?timeout=10s": `
	cases := []struct {
		sentence, reason, message string
		want                      Admission
	}{
		{"nothing listens", ReasonWebhookUnavailable, called + "dial tcp 10.0.0.1:443: connect: connection refused",
			Admission{"w.example.com", AdmissionRefused}},
		{"no pod is ready", ReasonWebhookUnavailable, called + `no endpoints available for service "w"`,
			Admission{"w.example.com", AdmissionNoEndpoints}},
		{"no answer in time", ReasonWebhookUnavailable, called + "context deadline exceeded",
			Admission{"w.example.com", AdmissionTimeout}},
		{"its certificate is over", ReasonWebhookUnavailable, called +
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time is after",
			Admission{"w.example.com", AdmissionExpired}},
		{"its certificate is a stranger's", ReasonWebhookUnavailable,
			called + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
			Admission{"w.example.com", AdmissionUnknownAuthority}},
		{"rubbish", ReasonWebhookUnavailable,
			`Internal error occurred: failed calling webhook "w.example.com": received invalid webhook response: x`,
			Admission{"w.example.com", AdmissionOther}},
		{"a conversion webhook", ReasonWebhookUnavailable,
			`conversion webhook for tekton.dev/v1beta1, Kind=PipelineRun failed: Post "https://x": EOF`,
			Admission{"conversion webhook for tekton.dev/v1beta1, Kind=PipelineRun", AdmissionOther}},
		{"it says no", ReasonDenied, `admission webhook "w.example.com" denied the request: no`,
			Admission{"w.example.com", AdmissionDenied}},
		{"it says no in an outage's words", ReasonDenialEchoesOutage,
			`admission webhook "w.example.com" denied the request: i/o timeout`, Admission{"w.example.com", AdmissionFailed}},
		{"a policy says no", ReasonDenied,
			`pods "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
			Admission{"p", AdmissionDenied}},
		{"a plug-in says no", ReasonDenied, `pods "x" is forbidden: violates PodSecurity "restricted:latest"`,
			Admission{BuiltIn, AdmissionDenied}},
		{"an author's text names no webhook", ReasonDenied,
			`admission webhook "w.example.com" denied the request: admission webhook "other" denied the request`,
			Admission{"w.example.com", AdmissionDenied}},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			got, ok := Operatorf(c.reason, "%s", c.message).Admission()
			if !ok || got != c.want {
				t.Errorf("Admission() = %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
	if got, ok := Operatorf(ReasonForbidden, "%s", called+"connection refused").Admission(); ok {
		t.Errorf("Admission() of a fault for another reason = %+v, want none", got)
	}
}
