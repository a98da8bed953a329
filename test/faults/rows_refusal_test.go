// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// refusalRows: K11 to K23 except for quotas without a computed usage.
func refusalRows() []row {
	const created, patched, update, read = fault.VerbCreate, fault.VerbPatch, fault.VerbUpdate, fault.VerbRead
	const invalid, denied, forbidden = fault.ReasonInvalid, fault.ReasonDenied, fault.ReasonForbidden
	runs, unserved := cluster.PipelineRuns(), cluster.PipelineRuns()
	unserved.Version = "v9"
	elsewhere := create("k19")
	elsewhere.resource = unserved
	return []row{
		{id: "K11", when: "the API server finds a new PipelineRun invalid", verb: created, cause: asked(misnamed()),
			class: fault.Invalid, reason: invalid},
		{id: "K11", when: "it cannot read it strictly", verb: created, cause: asked(doubled()), class: fault.Invalid,
			reason: invalid},
		{id: "K11", when: "it finds a change invalid", verb: patched, cause: invalidPatch, class: fault.Operator,
			reason: invalid},
		{id: "K12", when: "a right is missing", verb: created, cause: asUnboundAccount, class: fault.Operator,
			reason: forbidden},
		{id: "K13", when: "a ResourceQuota is exhausted", verb: created, cause: asked(create("k13").in("full")),
			class: fault.Throttled, reason: fault.ReasonQuota, wait: fault.QuotaRetry},
		{id: "K14", when: "others change a ResourceQuota all the time", verb: created, cause: contended,
			class: fault.Conflict, reason: fault.ReasonConflict},
		{id: "K15", when: "a LimitRange refuses a new Pod", verb: created, cause: refusedPod("limited"), class: fault.Invalid,
			reason: denied},
		{id: "K15", when: "Pod Security refuses a new Pod", verb: created, cause: refusedPod("restricted"),
			class: fault.Invalid, reason: denied},
		{id: "K16", when: "the namespace is being deleted", verb: created, cause: leaving, class: fault.Operator,
			reason: fault.ReasonNamespaceTerminating},
		{id: "K17", when: "an admission plug-in is not ready", verb: created, cause: notReady,
			reason: fault.ReasonUnavailable},
		{id: "K18", when: "the namespace is missing", verb: created, cause: asked(create("k18").in("nowhere")),
			class: fault.Operator, reason: fault.ReasonNamespaceMissing},
		{id: "K19", when: "a version is not served, at a create", verb: created, cause: asked(elsewhere),
			class: fault.Operator, reason: fault.ReasonNotServed},
		{id: "K19", when: "a version is not served, at a list", verb: read, cause: asked(get(unserved, ci, "")),
			class: fault.Operator, reason: fault.ReasonNotServed},
		{id: "K20", when: "the object is gone", verb: patched,
			cause: asked(patch(runs, ci, "gone", `{"metadata":{"annotations":{"a":"b"}}}`)), reason: fault.ReasonNotFound},
		{id: "K21", when: "the object was changed meanwhile", verb: update, cause: outdated, class: fault.Conflict,
			reason: fault.ReasonConflict},
		{id: "K22", when: "the object exists", verb: created, cause: twice("k22", ""), reason: fault.ReasonAlreadyExists},
		{id: "K23", when: "a generated name is taken", verb: created, cause: twice("k23", "k2"),
			reason: fault.ReasonAlreadyExists},
	}
}

// asked is a call that needs no preparation.
func asked(c call) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error { return c.do(t.Context(), w.config) }
}

func misnamed() call {
	c := create("k11")
	c.body = named(run("k11"), "Build")
	return c
}

func doubled() call {
	c := create("k11").with("fieldValidation", metav1.FieldValidationStrict)
	c.body = []byte(
		`{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","kind":"PipelineRun","metadata":{"name":"build"},"spec":{}}`)
	c.headers = map[string]string{"Content-Type": "application/json"}
	return c
}

func invalidPatch(t *testing.T, w *environment) error {
	w.store(t, pending("k11"))
	return patch(cluster.PipelineRuns(), ci, "k11", `{"metadata":{"annotations":{"not a name":"x"}}}`).do(t.Context(),
		w.config)
}

// as returns the configuration of a service account of namespace ci.
func (w *environment) as(t *testing.T, account string) *rest.Config {
	t.Helper()
	token, err := w.Token(t.Context(), ci, account)
	must(t, err)
	config := w.RESTConfig()
	config.BearerToken = token
	return config
}

func asUnboundAccount(t *testing.T, w *environment) error {
	return create("k12").do(t.Context(), w.as(t, "default"))
}

// contended: whenever the API server counts a PipelineRun in its ResourceQuota, a webhook has just
// changed the quota.
func contended(t *testing.T, w *environment) error {
	h := w.answering("k14", "/touches")
	h.resource = "resourcequotas/status"
	w.install(t, h)
	return until(t, func() error {
		c := create("k14-run").in("contended")
		c.body.(map[string]any)["metadata"] = map[string]any{"generateName": "build-"}
		return c.do(t.Context(), w.config)
	})
}

func refusedPod(namespace string) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error { return w.refused(t, post("pods", namespace, pod())) }
}

func leaving(t *testing.T, w *environment) error {
	must(t, w.DeleteNamespace(t.Context(), "leaving"))
	return w.refused(t, create("k16").in("leaving"))
}

// notReady calls an API server that waits for policies that it does not serve. Until it knows the
// custom resources, its answer is another one.
func notReady(t *testing.T, w *environment) error {
	part, config, err := w.OtherAPIServer("unready-apiserver", "--feature-gates=MutatingAdmissionPolicy=true")
	must(t, err)
	must(t, part.Start(t.Context()))
	t.Cleanup(func() { _ = part.Kill() })
	return until(t, func() error {
		err := create("k17").do(t.Context(), config)
		if apierrors.IsServiceUnavailable(err) {
			return nil
		}
		return err
	})
}

func outdated(t *testing.T, w *environment) error {
	old := pending("k21")
	w.store(t, old)
	old.SetResourceVersion("1")
	c := get(cluster.PipelineRuns(), ci, "k21")
	c.method, c.body = http.MethodPut, old
	return c.do(t.Context(), w.config)
}

// twice creates an object with the same name again, the second time as if the API server had
// generated the name.
func twice(name, generateName string) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		object := pending(name)
		w.store(t, object)
		object.SetGenerateName(generateName)
		c := create("")
		c.body = object
		return c.do(t.Context(), w.config)
	}
}

// quotasUncounted: no controller computes the usage of a ResourceQuota.
func quotasUncounted(t *testing.T, w *environment) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}
	if _, err := w.typed.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pause(t, cluster.ControllerManager)
}

// pause stops a process of the cluster until the test ends.
func (w *environment) pause(t *testing.T, name string) {
	t.Helper()
	part := w.Part(name)
	must(t, part.Pause())
	t.Cleanup(func() {
		if err := part.Continue(); err != nil {
			t.Error(err)
		}
	})
}

func freshQuotaRows() []row {
	fresh := func(t *testing.T, w *environment) error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "runs"}}
		quota.Spec.Hard = corev1.ResourceList{"count/pipelineruns.tekton.dev": *resource.NewQuantity(5, resource.DecimalSI)}
		if _, err := w.typed.CoreV1().ResourceQuotas("fresh").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		quota.Status.Hard = quota.Spec.Hard
		if _, err := w.typed.CoreV1().ResourceQuotas("fresh").UpdateStatus(t.Context(), quota,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return w.refused(t, create("k13").in("fresh"))
	}
	return []row{{id: "K13", when: "what is used of a ResourceQuota is not known yet", verb: fault.VerbCreate,
		cause: fresh, class: fault.Throttled, reason: fault.ReasonQuota, wait: fault.QuotaRetry}}
}

// sizeRows: K27. etcd takes 1.5 MiB, the API server sends it 2 MiB, and reads 3 MiB itself.
func sizeRows() []row {
	const create, patched, large = fault.VerbCreate, fault.VerbPatch, fault.ReasonTooLarge
	return []row{
		{id: "K27", when: "a new PipelineRun is too large for etcd", verb: create, cause: asked(sized(1700)),
			class: fault.Invalid, reason: large},
		{id: "K27", when: "it is too large to be sent to etcd", verb: create, cause: asked(sized(2500)), class: fault.Invalid,
			reason: large},
		{id: "K27", when: "it is too large for the API server", verb: create, cause: asked(sized(3500)), class: fault.Invalid,
			reason: large},
		{id: "K27", when: "its annotations are too large", verb: create, cause: asked(annotated(300)), class: fault.Invalid,
			reason: fault.ReasonInvalid},
		{id: "K27", when: "a change makes an object too large for etcd", verb: patched, cause: grown, class: fault.Operator,
			reason: large},
	}
}

// sized is a new PipelineRun with a param of so many KiB.
func sized(kib int) call {
	c := create("k27")
	param := map[string]any{"name": "p", "value": strings.Repeat("x", kib<<10)}
	c.body.(map[string]any)["spec"].(map[string]any)["params"] = []any{param}
	return c
}

func annotated(kib int) call {
	c := create("k27")
	c.body.(map[string]any)["metadata"].(map[string]any)["annotations"] = map[string]any{"a": strings.Repeat("x", kib<<10)}
	return c
}

// grown changes a Role, whose size neither Tekton nor another limit restricts.
func grown(t *testing.T, w *environment) error {
	large := `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"resourceNames":["` + strings.Repeat("x",
		1700<<10) + `"]}]}`
	return patch(rbacv1.SchemeGroupVersion.WithResource("roles"), ci, "large", large).do(t.Context(), w.config)
}
