// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// C6: the API server names the problem that a user has to fix, and the remedy says how. A problem
// that goes away without a user has no remedy.
func TestRemedies(t *testing.T) {
	const cannot = `pipelineruns.tekton.dev is forbidden: User "system:serviceaccount:plumbline:controller" cannot create resource "pipelineruns" in API group "tekton.dev" in the namespace "ci"`
	for name, test := range map[string]struct {
		err   error
		words []string
	}{
		"a right is missing": {status(403, "Forbidden", cannot, `{"kind":"pipelineruns"}`),
			[]string{cannot + ": grant this right", "config/", "Role"}},
		"a namespace is missing": {status(404, "NotFound", `namespaces "ci" not found`,
			`{"kind":"namespaces","name":"ci"}`), []string{`namespaces "ci" not found: create`}},
		"a kind is not served": {apierrors.NewGenericServerResponse(404, "post", metav1Resource(), "",
			"404 page not found", 0, true), []string{"(post pipelineruns.tekton.dev)", "install the CustomResourceDefinition"}},
		"it is too large": {apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
			[]string{"limit is 3145728: the cluster stores nothing that large; make it smaller"}},
		"etcd is full": {status(500, "", "etcdserver: mvcc: database space exceeded", ""),
			[]string{"database space exceeded: etcd has no space left; compact"}},
		"our token is not accepted": {apierrors.NewUnauthorized("Unauthorized"),
			[]string{"Unauthorized: the API server does not accept the token of Plumbline"}},
		"the versions do not fit": {status(415, "UnsupportedMediaType", "no", ""), []string{"compare their versions"}},
		"a certificate has expired": {internal(callPrefix + "x509: certificate has expired or is not yet valid"),
			[]string{"renew its certificate", "Tekton's"}},
		"a certificate is a stranger's": {
			internal(callPrefix + "x509: certificate signed by unknown authority"), []string{"caBundle"},
		},
		"our own limit is exhausted": {
			errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"),
			[]string{"-kube-api-qps"},
		},
		"a webhook is away": {internal(callPrefix + "connection refused"), nil},
		"a proxy forbids it": {
			apierrors.NewGenericServerResponse(403, "post", metav1Resource(), "", "<html>", 0, true), nil,
		},
		"the namespace is going away": {apierrors.NewForbidden(metav1Resource(), "x", errors.New("being terminated")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := Of(fmt.Errorf("creating: %w", FromKube(VerbCreate, test.err)))
			if (f.Remedy != "") != (test.words != nil) || f.Remedy == "" && f.Advice() != f.Message {
				t.Errorf("remedy %q, advice %q", f.Remedy, f.Advice())
			}
			for _, words := range test.words {
				if !strings.Contains(f.Advice(), words) {
					t.Errorf("advice %q does not say %q", f.Advice(), words)
				}
			}
		})
	}
}

// A remedy for authors is not for those who look after the cluster.
func TestAsOwnDropsTheAuthorsRemedy(t *testing.T) {
	large := status(500, "", "etcdserver: request is too large", "")
	for about, f := range map[string]*Error{"a change": FromKube(VerbPatch, large),
		"an object of ours": FromKube(VerbCreate, large).AsOwn()} {
		if f.Class != Operator || f.Remedy != "" {
			t.Errorf("%s: class %s, remedy %q", about, f.Class, f.Remedy)
		}
	}
}

func TestBelieve(t *testing.T) {
	echo := status(403, "", `admission webhook "x" denied the request: dial tcp 10.0.0.1:443: i/o timeout`, "")
	for verb, want := range map[Verb]Class{VerbCreate: Invalid, VerbDryRun: Invalid, VerbPatch: Operator} {
		f := FromKube(verb, fmt.Errorf("creating: %w", echo))
		if b := f.Believe(); b.Class != want || b.Reason != "AdmissionDenied" || b.Message != f.Message {
			t.Errorf("%s: believed as %+v, want class %v", verb, b, want)
		}
		if f.Class != Transient {
			t.Errorf("%s: Believe changed its receiver", verb)
		}
		if b := Of(fmt.Errorf("step: %w", f)).Believe(); b.Class != want {
			t.Errorf("%s: wrapped and believed as %v", verb, b.Class)
		}
	}
	other := Transientf("X", "x")
	if other.Believe() != other {
		t.Error("a fault that is no echo was changed")
	}
}

func TestWebhookName(t *testing.T) {
	for message, want := range map[string]string{
		callPrefix + "EOF":   "validation.webhook.pipeline.tekton.dev",
		denyPrefix + "no":    "validation.webhook.pipeline.tekton.dev",
		"connection refused": "",
		`conversion webhook for tekton.dev/v1beta1, Kind=PipelineRun failed: Post "x"`: "conversion webhook for tekton.dev/v1beta1, Kind=PipelineRun",
	} {
		if got := WebhookName(message); got != want {
			t.Errorf("WebhookName(%q) = %q, want %q", message, got, want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	f := FromKube(VerbCreate, status(400, "BadRequest", denyPrefix+strings.Repeat("é", maxMessageBytes), ""))
	if len(f.Message) > maxMessageBytes+32 || !strings.HasSuffix(f.Message, "é … (cut)") {
		t.Errorf("message of %d bytes ends with %q", len(f.Message), f.Message[len(f.Message)-20:])
	}
}
