// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// webhookRows: K2 to K5, K7 to K10, K37 and K38.
func webhookRows() []row {
	const create, dry, patched = fault.VerbCreate, fault.VerbDryRun, fault.VerbPatch
	const away, failed, denied = fault.ReasonWebhookUnavailable, fault.ReasonWebhookFailed, fault.ReasonDenied
	return []row{
		{id: "K2", when: "a webhook's Service has no endpoints", verb: create, cause: withoutEndpoints, reason: away},
		{id: "K3", when: "a webhook does not answer in time", verb: create, cause: unanswered("k3-slow", "/slow"),
			reason: away, unknown: true},
		{id: "K3", when: "a webhook hangs up", verb: create, cause: unanswered("k3-eof", "/hangs-up"), reason: away,
			unknown: true, varies: true},
		{id: "K4", when: "a webhook's certificate has expired", verb: create, cause: certified("k4-over", true),
			reason: away},
		{id: "K4", when: "a webhook's certificate is of an unknown authority", verb: create,
			cause: certified("k4-unknown", false), reason: away},
		{id: "K5", when: "a webhook answers a page", verb: create, cause: judged("k5-page", "/rubbish"), reason: away},
		{id: "K5", when: "a webhook answers another question", verb: create, cause: judged("k5-other", "/another"),
			reason: away},
		{id: "K5", when: "a webhook's patch cannot be read", verb: create, cause: mutated("k5-patch", "/patches"),
			reason: away},
		{id: "K7", when: "Tekton refuses a new PipelineRun", verb: create, cause: tektonDenies, class: fault.Invalid,
			reason: denied},
		{id: "K7", when: "a webhook refuses a new PipelineRun", verb: create, cause: judged("k7-create", "/denies"),
			class: fault.Invalid, reason: denied},
		{id: "K7", when: "a webhook refuses it without a word", verb: create, cause: judged("k7-silent", "/silent"),
			class: fault.Invalid, reason: denied},
		{id: "K7", when: "a webhook refuses it in a dry run", verb: dry, cause: judgedDry("k7-dry", "/denies"),
			class: fault.Invalid, reason: denied},
		{id: "K7", when: "a webhook refuses a change", verb: patched, cause: judgedPatch("k7-patch", "/denies"),
			class: fault.Operator, reason: denied},
		{id: "K8", when: "a webhook refuses with code 500", verb: create, cause: judged("k8-fails", "/fails"),
			reason: failed},
		{id: "K8", when: "a webhook refuses with code 429", verb: create, cause: judged("k8-busy", "/busy"), reason: failed},
		{id: "K9", when: "a webhook refuses in the words of an outage", verb: create, cause: judged("k9", "/echoes"),
			reason: fault.ReasonDenialEchoesOutage},
		{id: "K10", when: "a policy refuses a new PipelineRun", verb: create, cause: policyDenies, class: fault.Invalid,
			reason: denied},
		{id: "K10", when: "a policy refuses a change", verb: patched, cause: policyDeniesPatch, class: fault.Operator,
			reason: denied},
		{id: "K37", when: "Tekton refuses a change of a run that has started", verb: patched,
			cause: changed("k37-started", "Running"), class: fault.Conflict, reason: fault.ReasonAlreadyStarted},
		{id: "K37", when: "Tekton refuses a change of a run that is complete", verb: patched,
			cause: changed("k37-complete", "Succeeded"), class: fault.Conflict, reason: fault.ReasonAlreadyComplete},
		{id: "K38", when: "a webhook does not support dry run", verb: dry, cause: withoutDryRun, class: fault.Ignored,
			reason: fault.ReasonNoDryRun},
	}
}

func withoutEndpoints(t *testing.T, w *environment) error {
	service := registration.WebhookClientConfig{
		Service: &registration.ServiceReference{Namespace: ci, Name: "policy"}, CABundle: w.judge.authority(),
	}
	w.install(t, hook{label: "k2", client: service})
	c := post("configmaps", ci, configMap("k2"))
	_ = until(t, func() error { return c.dry().do(t.Context(), w.odd) })
	return c.do(t.Context(), w.odd)
}

// hooked is a new PipelineRun that a webhook must admit.
func hooked(with func(w *environment) hook) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		h := with(w)
		w.install(t, h)
		return w.refused(t, create(h.label))
	}
}

// unanswered: the webhook is called at a path where it does not answer.
func unanswered(label, path string) func(*testing.T, *environment) error {
	return hooked(func(w *environment) hook { return at(label, w.judge.valid.URL+path, w.judge.authority()) })
}

// judged: the webhook is called at a path.
func judged(label, path string) func(*testing.T, *environment) error {
	return hooked(func(w *environment) hook { return w.answering(label, path) })
}

func mutated(label, path string) func(*testing.T, *environment) error {
	return hooked(func(w *environment) hook {
		h := w.answering(label, path)
		h.mutates = true
		return h
	})
}

func judgedDry(label, path string) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		w.install(t, w.answering(label, path))
		return until(t, func() error { return create(label).dry().do(t.Context(), w.config) })
	}
}

// withoutDryRun: no current API accepts a webhook that does not declare dry-run support, but a
// cluster may have an old one. It is copied into etcd.
func withoutDryRun(t *testing.T, w *environment) error {
	const old = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"row-k38","uid":"1"},
		"webhooks":[{"name":"policy.example.com","clientConfig":{"url":"https://127.0.0.1:1"},"sideEffects":"Some","failurePolicy":"Fail",
		"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{"matchLabels":{"row":"k38"}},"timeoutSeconds":1,"admissionReviewVersions":["v1"],
		"rules":[{"operations":["CREATE"],"apiGroups":["tekton.dev"],"apiVersions":["v1"],"resources":["pipelineruns"],"scope":"*"}]}]}`
	encode := base64.StdEncoding.EncodeToString
	key := encode([]byte("/registry/validatingwebhookconfigurations/row-k38"))
	must(t, w.etcd(t.Context(), "/v3/kv/put", `{"key":"`+key+`","value":"`+encode([]byte(old))+`"}`, nil))
	return until(t, func() error { return create("k38").dry().do(t.Context(), w.config) })
}

func judgedPatch(label, path string) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		w.store(t, pending(label))
		w.install(t, w.answering(label, path))
		return w.refused(t, patch(cluster.PipelineRuns(), ci, label, `{"metadata":{"annotations":{"a":"b"}}}`))
	}
}

// certified is a webhook whose certificate has expired, or is not signed by the caBundle.
func certified(label string, over bool) func(*testing.T, *environment) error {
	return hooked(func(w *environment) hook {
		server := map[bool]*httptest.Server{false: w.judge.valid, true: w.judge.over}[over]
		return at(label, server.URL+"/denies", w.judge.certificate)
	})
}

func tektonDenies(t *testing.T, w *environment) error {
	empty := run("k7")
	empty["spec"] = map[string]any{"timeouts": map[string]any{"pipeline": "1h"}}
	c := create("")
	c.body = empty
	return c.do(t.Context(), w.config)
}

func policyDenies(t *testing.T, w *environment) error { return w.refused(t, create("k10")) }

func policyDeniesPatch(t *testing.T, w *environment) error {
	owned := pending("k10")
	owned.SetName("k10-owned")
	owned.SetAnnotations(map[string]string{"owner": "team"})
	w.store(t, owned)
	return w.refused(t, patch(cluster.PipelineRuns(), ci, "k10-owned", `{"metadata":{"annotations":{"owner":null}}}`))
}

// changed is a change of the spec of a PipelineRun whose condition Succeeded has a reason.
func changed(name, reason string) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		object := &unstructured.Unstructured{Object: named(run(name), name)}
		if reason == "Running" {
			object.SetAnnotations(map[string]string{cluster.HoldAnnotation: "true"})
		}
		w.store(t, object)
		works(t, func(ctx context.Context) error {
			data, err := get(cluster.PipelineRuns(), ci, name).answer(ctx, w.config)
			if err != nil {
				return err
			}
			now := &unstructured.Unstructured{}
			if err := now.UnmarshalJSON(data); err != nil {
				return err
			}
			if is := cluster.ConditionOf(now, "Succeeded").Reason; is != reason {
				return fmt.Errorf("the run is %q", is)
			}
			return nil
		})
		return patch(cluster.PipelineRuns(), ci, name, `{"spec":{"timeouts":{"pipeline":"2h"}}}`).do(t.Context(), w.config)
	}
}

// pending is a PipelineRun with the name of its label that Tekton ignores.
func pending(label string) *unstructured.Unstructured {
	object := named(run(label), label)
	object["spec"].(map[string]any)["status"] = "PipelineRunPending"
	return &unstructured.Unstructured{Object: object}
}

// store creates an object of namespace ci.
func (w *environment) store(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	c := create("")
	c.body = object
	must(t, c.do(t.Context(), w.config))
}

// webhookAway: nothing listens at the address of Tekton's webhook.
func webhookAway(t *testing.T, w *environment) {
	w.store(t, pending("stored"))
	webhook := w.Part(cluster.TektonWebhook)
	must(t, webhook.Kill())
	t.Cleanup(func() {
		if err := webhook.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	// the API server's connections of before break in several ways, a new one in one
	works(t, func(ctx context.Context) error {
		err := create("k1").do(ctx, w.config)
		if err == nil {
			return errors.New("nothing listens where Tekton's webhook should be, and a create works")
		}
		if !strings.Contains(err.Error(), "connection refused") {
			return err
		}
		return nil
	})
}

// awayRows: K1 and K6.
func awayRows() []row {
	beta := schema.GroupVersionResource{Group: "tekton.dev", Version: "v1beta1", Resource: "pipelineruns"}
	const away = fault.ReasonWebhookUnavailable
	change := patch(cluster.PipelineRuns(), ci, "stored", `{"metadata":{"annotations":{"a":"b"}}}`)
	return []row{
		{id: "K1", when: "nothing listens where a webhook should be", verb: fault.VerbCreate, cause: asked(create("k1")),
			reason: away, varies: true},
		{id: "K1", when: "nothing listens, at a change", verb: fault.VerbPatch, cause: asked(change), reason: away,
			varies: true},
		{id: "K6", when: "nothing listens where a conversion webhook should be", verb: fault.VerbRead,
			cause: asked(get(beta, ci, "stored")), reason: away, varies: true},
	}
}
