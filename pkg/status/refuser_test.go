// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A refusal names the component that refused. The words are those of a real API server
// (docs/errors.md).
func TestARefusalNamesWhoRefused(t *testing.T) {
	const denied, rejected, tooLarge = "AdmissionDenied", "Rejected", "TooLarge"
	for _, test := range []struct{ reason, words, want string }{
		{denied, `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec`, "Tekton's admission webhook <b>validation.webhook.pipeline.tekton.dev</b>"},
		{denied, `admission webhook "webhook.pipeline.tekton.dev" denied the request: mutation failed: cannot decode`,
			"Tekton's admission webhook <b>webhook.pipeline.tekton.dev</b>"},
		{denied, `admission webhook "policy.example.com" denied the request: image registry.example.com/app has no digest`,
			"The admission webhook <b>policy.example.com</b>"},
		{denied, `admission webhook "policy.example.com" denied the request without explanation`,
			"The admission webhook <b>policy.example.com</b>"},
		{denied, `admission webhook "validate.kyverno.svc-fail" denied the request: says admission webhook "validation.webhook.pipeline.tekton.dev" denied the request`, "The admission webhook <b>validate.kyverno.svc-fail</b>"},
		{denied, `admission webhook "notwebhook.pipeline.tekton.dev" denied the request: no`,
			"The admission webhook <b>notwebhook.pipeline.tekton.dev</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: ValidatingAdmissionPolicy 'has-owner' with binding 'has-owner' denied request: a PipelineRun needs the annotation owner`, "The ValidatingAdmissionPolicy <b>has-owner</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: ValidatingAdmissionPolicy 'has-owner' denied request: no`,
			"The ValidatingAdmissionPolicy <b>has-owner</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: policy 'adds-labels' with binding 'all' denied request: expression failed`, "The admission policy <b>adds-labels</b>"},
		{denied, `pods "build" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`,
			"Pod Security admission (<b>restricted:latest</b>)"},
		{denied, `pods "build" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			"A LimitRange of the namespace"},
		{denied, `pods "build" is forbidden: [minimum memory usage per Pod is 1Gi, but request is 1Mi, maximum cpu usage per Container is 1, but limit is 2]`, "A LimitRange of the namespace"},
		{denied,
			`pods "build" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`,
			"A LimitRange of the namespace"},
		{denied, `PipelineRun.tekton.dev "build" is invalid: metadata.annotations: Invalid value: "admission webhook \"x\" denied the request": no`, "The validation of the Kubernetes API server"},
		{denied, `pipelineruns.tekton.dev is forbidden: a plug-in says no`, "The Kubernetes API server"},
		{rejected,
			`PipelineRun.tekton.dev "Build" is invalid: metadata.name: Invalid value: "Build": a lowercase RFC 1123 subdomain`,
			"The validation of the Kubernetes API server"},
		{rejected,
			`PipelineRun in version "v1" cannot be handled as a PipelineRun: strict decoding error: duplicate field "kind"`,
			"The validation of the Kubernetes API server"},
		{tooLarge, "etcdserver: request is too large: the cluster stores nothing that large",
			"The cluster's limit on the size of an object"},
		{tooLarge, "Request entity too large: limit is 3145728: the cluster stores nothing that large",
			"The cluster's limit on the size of an object"},
		{denied, `admission webhook "<img src=x>" denied the request: no`, "The admission webhook <b>&lt;img src=x&gt;</b>"},
	} {
		run := v1alpha1.Run{Pipeline: "build", Name: "build-abc", Namespace: "ci",
			Refused: &v1alpha1.Refusal{Reason: test.reason, Message: test.words}}
		var c Check
		Input{Application: "CI"}.refused(&c, RunState{Run: run})
		if !strings.Contains(c.Text, "\n"+test.want+" has reported this error:\n") {
			t.Errorf("%s: %s\nis reported as\n%s\nwant %s", test.reason, test.words, c.Text, test.want)
		}
		if own := strings.HasPrefix(test.want, "Tekton's") || strings.HasPrefix(test.want, "The validation") ||
			test.reason == tooLarge; strings.Contains(c.Text, fixIt) != own || strings.Contains(c.Text, meetIt) == own {
			t.Errorf("%s: the advice of\n%s", test.words, c.Text)
		}
	}
}
