// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	ownfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
)

// test/installation uninstalls a real installation. These tests are about decisions and refusals.

const system = "plumbline"

type env struct {
	*testing.T
	Uninstaller
	kube    *kubefake.Clientset
	own     *ownfake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	out     strings.Builder
}

// thing is an object of a kind, as config/ labels it.
func thing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"app.kubernetes.io/part-of": "plumbline"})
	return o
}

func binding(kind, namespace, name, of string) *unstructured.Unstructured {
	o := thing("rbac.authorization.k8s.io/v1", kind, namespace, name)
	o.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "plumbline-controller", "namespace": of}}
	return o
}

func controller(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      "plumbline-controller",
			Labels:    map[string]string{"app.kubernetes.io/name": "plumbline-controller"},
		},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 1},
	}
}

func gitEvent(name string, change func(*v1alpha1.GitEvent)) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	e.Spec.Repository.URL = "https://github.com/acme/app"
	e.Status.Ref = "main"
	change(e)
	return e
}

// running is an event whose run has not finished.
func running(e *v1alpha1.GitEvent) {
	e.Status.Plan = &v1alpha1.Plan{}
	e.Status.Runs = []v1alpha1.Run{{Pipeline: "build"}}
	e.Status.Checks = []v1alpha1.Check{{Key: "run-1", Name: "CI / build", ID: "1"}}
}

func newEnv(t *testing.T, deployments []runtime.Object, events ...runtime.Object) *env {
	t.Helper()
	e := &env{T: t, kube: kubefake.NewSimpleClientset(deployments...), own: ownfake.NewSimpleClientset(events...)}
	lists := map[schema.GroupVersionResource]string{definitions(): "CustomResourceDefinitionList"}
	for _, g := range append(e.groups(nil), ofCluster()...) {
		lists[g.GroupVersionResource] = strings.ToUpper(g.Resource) + "List"
	}
	foreign := thing("v1", "ConfigMap", system, "theirs")
	foreign.SetLabels(nil)
	e.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(),
		lists,
		thing(
			"apps/v1",
			"Deployment",
			system,
			"plumbline-receiver",
		),
		thing("apps/v1", "Deployment", system, "plumbline-controller"),
		thing("route.openshift.io/v1", "Route", system, "plumbline-receiver"),
		thing("v1", "Service", system, "plumbline-receiver"),
		thing("v1", "ConfigMap", system, "plumbline"),
		foreign,
		thing("v1", "Secret", system, "plumbline-github-app"),
		thing("v1", "Secret", system, "plumbline-webhook-secrets-0"),
		binding(
			"ClusterRoleBinding",
			"",
			"plumbline-controller",
			system,
		),
		binding("ClusterRoleBinding", "", "other", "elsewhere"),
		binding("RoleBinding", "team-a", "plumbline-controller-secrets", system),
		thing("rbac.authorization.k8s.io/v1", "ClusterRole", "", "plumbline-controller"),
		thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gitevents.plumbline.dev"),
		thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "repositories.pipelinesascode.tekton.dev"),
		thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "tasks.tekton.dev"),
	)
	e.Uninstaller = Uninstaller{
		Cluster:   &kube.Cluster{Kube: e.kube, Own: e.own, Dynamic: e.dynamic},
		Namespace: system,
		AppSecret: "plumbline-github-app",
		Timeout:   200 * time.Millisecond,
		Poll:      time.Millisecond,
		Out:       &e.out,
	}
	e.allow()
	return e
}

// deleted returns the deleted objects in order.
func (e *env) deleted() (all []string) {
	for _, a := range e.dynamic.Actions() {
		if d, is := a.(clienttesting.DeleteAction); is {
			all = append(all, a.GetResource().Resource+"/"+d.GetName())
		}
	}
	return all
}

func (e *env) says(parts ...string) {
	e.Helper()
	for _, part := range parts {
		if !strings.Contains(e.out.String(), part) {
			e.Errorf("the output does not have %q:\n%s", part, e.out.String())
		}
	}
}

func TestRunChangesNothingWithoutYes(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)}, gitEvent("gh-1", running))
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := e.deleted(); len(all) > 0 {
		t.Errorf("deleted %v", all)
	}
	e.says(
		"Nothing was changed",
		`https://github.com/acme/app main: ["CI / build"] of event gh-1`,
		"deployments.apps/plumbline-controller",
		"Kept:",
	)
}

func TestRunDeletesInOrder(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)})
	e.Yes = true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deployments/plumbline-controller",
		"deployments/plumbline-receiver",
		"routes/plumbline-receiver",
		"services/plumbline-receiver",
		"configmaps/plumbline",
		"secrets/plumbline-webhook-secrets-0",
		"rolebindings/plumbline-controller-secrets",
		"clusterrolebindings/plumbline-controller",
		"clusterroles/plumbline-controller",
		"customresourcedefinitions/gitevents.plumbline.dev",
	}
	if all := e.deleted(); !slices.Equal(all, want) {
		t.Errorf("deleted %q,\nwant %q", all, want)
	}
}

func TestRunDeletesRepositoriesOnlyIfTold(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)})
	e.Yes, e.Repositories = true, true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := e.deleted()
	if !slices.Contains(all, "customresourcedefinitions/repositories.pipelinesascode.tekton.dev") ||
		slices.Contains(all, "customresourcedefinitions/tasks.tekton.dev") {
		t.Errorf("deleted %q", all)
	}
}

func TestOtherInstallationsKeepWhatIsShared(t *testing.T) {
	deployments := []runtime.Object{controller(system), controller("second")}
	e := newEnv(t, deployments)
	e.Yes = true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := e.deleted(); slices.ContainsFunc(all, func(name string) bool {
		return strings.HasPrefix(name, "clusterroles/") || strings.HasPrefix(name, "customresourcedefinitions/")
	}) {
		t.Errorf("deleted %q", all)
	}
	e.says("the installation in namespace second uses")
	e = newEnv(t, deployments)
	e.Repositories = true
	if err := e.Uninstaller.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "installations in second") {
		t.Errorf("got %v", err)
	}
}

func TestRunAsksWhatToDoWithOpenChecks(t *testing.T) {
	away := controller(system)
	away.Status.AvailableReplicas = 0
	for name, test := range map[string]struct {
		closes, want string
		controllers  []runtime.Object
		deletes      bool
	}{
		"not decided":              {"", "add --close-checks", []runtime.Object{controller(system)}, false},
		"they stay open":           {Leave, "", []runtime.Object{controller(system)}, true},
		"no controller runs":       {Cancel, "no controller runs", nil, false},
		"no controller is ready":   {Wait, "no controller runs", []runtime.Object{away}, false},
		"they do not end":          {Wait, "1 events still have open checks after ", []runtime.Object{controller(system)}, false},
		"the cancel has no effect": {Cancel, "1 events still have open checks", []runtime.Object{controller(system)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, test.controllers, gitEvent("gh-1", running))
			e.Yes, e.CloseChecks = true, test.closes
			err := e.Uninstaller.Run(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if all := e.deleted(); len(all) > 0 != test.deletes {
				t.Errorf("deleted %q", all)
			}
			cancelled := slices.DeleteFunc(e.own.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() != "patch" })
			if len(cancelled) > 1 { // each patch makes the controllers work
				t.Errorf("the event was cancelled %d times", len(cancelled))
			}
		})
	}
}

// Ctrl-C may end an earlier call after it has deleted the Deployments, while their pods still run.
func TestRunWaitsForPodsWithoutDeployments(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: system,
		Name:      "plumbline-controller-0",
		Labels:    map[string]string{"app.kubernetes.io/name": "plumbline-controller"},
	}}
	e := newEnv(t, []runtime.Object{pod})
	for _, name := range []string{"plumbline-receiver", "plumbline-controller"} {
		if err := e.dynamic.Resource(deployments()).
			Namespace(system).
			Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.dynamic.ClearActions()
	e.Yes = true
	err := e.Uninstaller.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "pods of plumbline-controller still run") {
		t.Errorf("got %v", err)
	}
	if all := e.deleted(); len(all) > 0 {
		t.Errorf("deleted %q under a running controller", all)
	}
}
