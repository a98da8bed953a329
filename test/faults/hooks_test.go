// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"net/http"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policyWebhook is the name of each webhook here, which messages contain.
const policyWebhook = "policy.example.com"

// hook is an admission webhook for the objects with one value of the label row.
type hook struct {
	label   string
	client  registration.WebhookClientConfig
	mutates bool
	// resource is the only one that it is asked about; empty is what the rows create.
	resource string
	// seconds are for how long it is waited for; 0 is one.
	seconds int32
}

// at is a webhook at an address.
func at(label, url string, authority []byte) hook {
	return hook{label: label, client: registration.WebhookClientConfig{URL: &url, CABundle: authority}}
}

// answering returns a webhook with the timeout that a busy machine may need.
func (w *environment) answering(label, path string) hook {
	h := at(label, w.judge.valid.URL+path, w.judge.authority())
	h.seconds = 30
	return h
}

// install registers the webhook until the test ends. The API server sees it a moment later.
func (w *environment) install(t *testing.T, h hook) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	kind, path := "ValidatingWebhookConfiguration",
		registration.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	if h.mutates { // it has the same fields
		kind, path.Resource = "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
	}
	effects, resources := registration.SideEffectClassNone, []string{"pipelineruns", "configmaps"}
	if h.resource != "" {
		resources = []string{h.resource}
	}
	object := &registration.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{Kind: kind, APIVersion: registration.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{Name: "row-" + h.label},
		Webhooks: []registration.ValidatingWebhook{{
			Name: policyWebhook, ClientConfig: h.client,
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"row": h.label}},
			SideEffects:    &effects, TimeoutSeconds: new(cmp.Or(h.seconds, 1)), AdmissionReviewVersions: []string{"v1"},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create, registration.Update},
				Rule:       registration.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
			}},
		}},
	}
	must(t, (call{method: http.MethodPost, resource: path, body: object}).do(ctx, w.config))
	t.Cleanup(func() { _ = call{method: http.MethodDelete, resource: path, name: object.Name}.do(ctx, w.config) })
}
