// SPDX-License-Identifier: Apache-2.0

package status

import (
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// tektonWebhook ends the names of all of Tekton's admission webhooks: config/500-webhooks.yaml of
// Tekton v1.15.0.
const tektonWebhook = "webhook.pipeline.tekton.dev"

// The words with which each part of the API server begins a refusal. They are anchored: what
// follows them can echo the author's text.
var (
	// k8s.io/apiserver pkg/admission/plugin/webhook/errors, ToStatusErr.
	byWebhook = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request`)
	// k8s.io/apiserver pkg/admission/plugin/policy: a decision of a policy, or a policy that cannot
	// be evaluated.
	byPolicy = regexp.MustCompile(
		`^` + forbidden + `(ValidatingAdmissionPolicy|MutatingAdmissionPolicy|policy) ['"]([^'"]+)['"]`,
	)
	// k8s.io/pod-security-admission.
	byPodSecurity = regexp.MustCompile(`^` + forbidden + `violates PodSecurity "([^"]+)"`)
	// k8s.io/kubernetes plugin/pkg/admission/limitranger.
	byLimitRange = regexp.MustCompile(
		`^` + forbidden + `\[?(?:(?:minimum|maximum) \S+ usage per|\S+ max limit to request ratio per)`,
	)
	// k8s.io/apimachinery pkg/api/errors, NewInvalid.
	byValidation = regexp.MustCompile(`^\S+ "[^"]*" is invalid: `)
)

// forbidden is how k8s.io/apiserver pkg/admission, NewForbidden, names the object.
const forbidden = `\S+ (?:"[^"]*" )?is forbidden: `

// refuser returns the component that refused a PipelineRun, as the start of a sentence in Markdown,
// and what to do. It reads the API server's words to name the component and for nothing else.
func refuser(reason, words string) (who, advice string) {
	switch reason {
	case fault.ReasonTooLarge:
		return "The cluster's limit on the size of an object", fixIt
	case fault.ReasonInvalid:
		return "The validation of the Kubernetes API server", fixIt
	}
	if match := byWebhook.FindStringSubmatch(words); match != nil {
		if name := match[1]; name == tektonWebhook || strings.HasSuffix(name, "."+tektonWebhook) {
			return "Tekton's admission webhook " + bold(name), fixIt
		}
		return "The admission webhook " + bold(match[1]), meetIt
	}
	if match := byPolicy.FindStringSubmatch(words); match != nil {
		return "The " + strings.Replace(match[1], "policy", "admission policy", 1) + " " + bold(match[2]), meetIt
	}
	if match := byPodSecurity.FindStringSubmatch(words); match != nil {
		return "Pod Security admission (" + bold(match[1]) + ")", meetIt
	}
	switch {
	case byLimitRange.MatchString(words):
		return "A LimitRange of the namespace", meetIt
	case byValidation.MatchString(words):
		return "The validation of the Kubernetes API server", fixIt
	}
	return "The Kubernetes API server", meetIt
}

func bold(name string) string { return "<b>" + plain(name) + "</b>" }
