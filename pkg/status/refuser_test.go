// SPDX-License-Identifier: Apache-2.0

package status

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A refusal names the component that refused. The words are those of a real API server
// (docs/errors.md).
func TestARefusalNamesWhoRefused(t *testing.T) {
	tag := regexp.MustCompile(`</?b>`)
	const denied, rejected, tooLarge = "AdmissionDenied", "Rejected", "TooLarge"
	for _, test := range []struct{ reason, words, want string }{
		{denied, `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec`, "Tekton's webhook <b>validation.webhook.pipeline.tekton.dev</b>"},
		{denied, `admission webhook "webhook.pipeline.tekton.dev" denied the request: mutation failed: cannot decode`,
			"Tekton's webhook <b>webhook.pipeline.tekton.dev</b>"},
		{denied, `admission webhook "policy.example.com" denied the request: image registry.example.com/app has no digest`,
			"the admission webhook <b>policy.example.com</b>"},
		{denied, `admission webhook "policy.example.com" denied the request without explanation`,
			"the admission webhook <b>policy.example.com</b>"},
		{denied, `admission webhook "validate.kyverno.svc-fail" denied the request: says admission webhook "validation.webhook.pipeline.tekton.dev" denied the request`, "the admission webhook <b>validate.kyverno.svc-fail</b>"},
		{denied, `admission webhook "notwebhook.pipeline.tekton.dev" denied the request: no`,
			"the admission webhook <b>notwebhook.pipeline.tekton.dev</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: ValidatingAdmissionPolicy 'has-owner' with binding 'has-owner' denied request: a PipelineRun needs the annotation owner`, "the ValidatingAdmissionPolicy <b>has-owner</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: ValidatingAdmissionPolicy 'has-owner' denied request: no`,
			"the ValidatingAdmissionPolicy <b>has-owner</b>"},
		{denied, `pipelineruns.tekton.dev "build" is forbidden: policy 'adds-labels' with binding 'all' denied request: expression failed`, "the admission policy <b>adds-labels</b>"},
		{denied, `pods "build" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`,
			"Pod Security admission at level <b>restricted:latest</b>"},
		{denied, `pods "build" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			"a LimitRange of the namespace"},
		{denied, `pods "build" is forbidden: [minimum memory usage per Pod is 1Gi, but request is 1Mi, maximum cpu usage per Container is 1, but limit is 2]`, "a LimitRange of the namespace"},
		{denied,
			`pods "build" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`,
			"a LimitRange of the namespace"},
		{denied, `PipelineRun.tekton.dev "build" is invalid: metadata.annotations: Invalid value: "admission webhook \"x\" denied the request": no`, "the validation of the Kubernetes API server"},
		{denied, `pipelineruns.tekton.dev is forbidden: a plug-in says no`, "the Kubernetes API server"},
		{rejected,
			`PipelineRun.tekton.dev "Build" is invalid: metadata.name: Invalid value: "Build": a lowercase RFC 1123 subdomain`,
			"the validation of the Kubernetes API server"},
		{rejected,
			`PipelineRun in version "v1" cannot be handled as a PipelineRun: strict decoding error: duplicate field "kind"`,
			"the validation of the Kubernetes API server"},
		{tooLarge, "etcdserver: request is too large: the cluster stores nothing that large",
			"the cluster's limit on the size of an object"},
		{tooLarge, "Request entity too large: limit is 3145728: the cluster stores nothing that large",
			"the cluster's limit on the size of an object"},
		{"AboveCeiling", ".tekton/build.yaml: spec.x is forbidden. This limit is set in y", "Plumbline's Pod Security limit"},
		{denied, `admission webhook "<img src=x>" denied the request: no`, "the admission webhook <b>&lt;img src=x&gt;</b>"},
	} {
		run := v1alpha1.Run{Pipeline: "build", Name: "build-abc", Namespace: "ci",
			Refused: &v1alpha1.Refusal{Reason: test.reason, Message: test.words}}
		var c Check
		Input{Application: "CI", Event: event(v1alpha1.DispositionRuns)}.refused(&c, RunState{Run: run})
		if !strings.Contains(c.Text, " did not start, because "+test.want+" rejected it:\n") ||
			c.Title != "Not started: rejected by "+html.UnescapeString(tag.ReplaceAllString(test.want, "")) {
			t.Errorf("%s: %s\nis reported as %q\n%s\nwant %s", test.reason, test.words, c.Title, c.Text, test.want)
		}
		if own := strings.HasPrefix(test.want, "Tekton's") || strings.HasPrefix(test.want, "the validation") ||
			test.reason == tooLarge; strings.Contains(c.Text, "\nFix [.tekton") != own || strings.Contains(c.Text, "a rule of") == own {
			t.Errorf("%s: the advice of\n%s", test.words, c.Text)
		}
	}
}
