// SPDX-License-Identifier: Apache-2.0

package diagnosis

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
	// etcd and the API server. A definition that Plumbline finds too large has the same reason.
	bySize = regexp.MustCompile(`etcdserver: request is too large|^Request entity too large|trying to send message larger`)
)

// forbidden is how k8s.io/apiserver pkg/admission, NewForbidden, names the object.
const forbidden = `\S+ (?:"[^"]*" )?is forbidden: `

// Component is a part of the cluster that refused a PipelineRun: what it is, and its name, which
// may be empty.
type Component struct{ Kind, Name string }

// String returns the component for a title.
func (c Component) String() string { return strings.TrimSpace(c.Kind + " " + c.Name) }

// Refuser returns the component that refused a PipelineRun, and the sentence that says what to do.
// Both are empty if the definition was refused before it reached the cluster. It reads the API
// server's words to name the component and for nothing else.
func Refuser(reason, words string) (who Component, advice string) {
	switch reason {
	case fault.ReasonDenied:
		return denier(words)
	case fault.ReasonInvalid:
		return Component{Kind: refuserValidation}, fixIt
	case fault.ReasonTooLarge:
		if bySize.MatchString(words) {
			return Component{Kind: refuserSize}, fixIt
		}
	case fault.ReasonOverLimit:
		return Component{Kind: refuserLimit}, meetIt
	}
	return Component{}, ""
}

// denier returns the admission that denied a PipelineRun.
func denier(words string) (who Component, advice string) {
	if match := byWebhook.FindStringSubmatch(words); match != nil {
		if isTekton(match[1]) {
			return Component{refuserTekton, match[1]}, fixIt
		}
		return Component{refuserWebhook, match[1]}, meetIt
	}
	if match := byPolicy.FindStringSubmatch(words); match != nil {
		return Component{"the " + strings.Replace(match[1], "policy", "admission policy", 1), match[2]}, meetIt
	}
	if match := byPodSecurity.FindStringSubmatch(words); match != nil {
		return Component{refuserPodSecurity, match[1]}, meetIt
	}
	switch {
	case byLimitRange.MatchString(words):
		return Component{Kind: refuserLimitRange}, meetIt
	case byValidation.MatchString(words):
		return Component{Kind: refuserValidation}, fixIt
	}
	return Component{Kind: refuserServer}, meetIt
}
