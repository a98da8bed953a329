// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

const value = "a value that is never printed"

func (e *env) start() error {
	s := &Start{Migration: e.Migration, AppSecret: "plumbline-github-app", Global: "pipelines-as-code"}
	return s.Run(e.Context())
}

func secret(namespace, name string, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for _, key := range keys {
		s.Data[key] = []byte(value)
	}
	return s
}

// theirs is what an administrator has given PaC.
func theirs() []runtime.Object {
	return []runtime.Object{
		secret(
			pacNS,
			"pipelines-as-code-secret",
			"github-application-id",
			"github-private-key",
			"webhook.secret",
			"unrelated",
		),
		secret(pacNS, "gitlab", "provider.token", "webhook.secret"),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: pacNS, Name: "pipelines-as-code"},
			Data: map[string]string{
				"application-name":               "Acme CI",
				"error-log-snippet":              "true",
				"remember-ok-to-test":            "maybe",
				"tekton-dashboard-url":           "",
				"auto-configure-new-github-repo": "true",
				"custom-console-url":             "https://theirs.example.com",
			},
		},
	}
}

func globalRepository() *pacv1alpha1.Repository {
	global := repository(pacNS, "pipelines-as-code", "")
	global.Labels = map[string]string{"app.kubernetes.io/instance": "argo-cd"}
	global.Spec.GitProvider = &pacv1alpha1.GitProvider{
		Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "gitlab"}, WebhookSecret: &pacv1alpha1.Secret{Name: "gitlab"},
	}
	return global
}

func TestStartCopiesWhatPlumblineLacks(t *testing.T) {
	e := newEnv(t, globalRepository())
	e.put(theirs()...)
	e.set("custom-console-url", "https://ours.example.com", "webhook-url", "https://hooks.example.com")
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"custom-console-url": "https://ours.example.com", "webhook-url": "https://hooks.example.com",
		"application-name": "Acme CI", "pipelines-as-code-url": pacURL, "serve-namespaces": system,
	}
	if diff := cmp.Diff(want, e.data()); diff != "" {
		t.Error(diff)
	}
	app, err := e.kube.CoreV1().Secrets(system).Get(t.Context(), "plumbline-github-app", metav1.GetOptions{})
	if err != nil || len(app.Data) != 3 || string(app.Data["github-private-key"]) != value {
		t.Errorf("%v: the App's Secret has %d keys", err, len(app.Data))
	}
	copied, err := e.own.PipelinesascodeV1alpha1().
		Repositories(system).
		Get(t.Context(), "pipelines-as-code", metav1.GetOptions{})
	if err != nil || cmp.Diff(globalRepository().Spec, copied.Spec) != "" || len(copied.Labels) > 0 {
		t.Errorf("%v: the global Repository is %+v", err, copied)
	}
	if _, err := e.kube.CoreV1().Secrets(system).Get(t.Context(), "gitlab", metav1.GetOptions{}); err != nil {
		t.Errorf("the Secret of the global Repository: %v", err)
	}
	e.says(
		"https://hooks.example.com/",
		"Copied to it: application-name",
		"Not copied: key remember-ok-to-test",
		"Not copied: key auto-configure-new-github-repo",
		"Not copied: key custom-console-url, which ConfigMap plumbline/plumbline has already",
	)
	if said := e.out.String(); strings.Contains(said, value) || strings.Contains(said, "Acme") ||
		strings.Contains(said, "theirs") {
		t.Errorf("it prints a value:\n%s", said)
	}
}

func TestStartNamesAdditionalControllers(t *testing.T) {
	e := newEnv(t)
	second := deployment(pacNS, "second-controller")
	second.Spec.Template.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{
		{Name: "PAC_CONTROLLER_CONFIGMAP", Value: "second"}, {Name: "PAC_CONTROLLER_SECRET", Value: "second-app"},
	}}}
	e.put(second)
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	e.says("openshift-pipelines/second-controller is an additional controller, with the GitHub App of Secret second-app")
}

func TestStartNeverOverwrites(t *testing.T) {
	ours := repository(system, "pipelines-as-code", "")
	e := newEnv(t, globalRepository(), ours)
	e.put(append(theirs(), secret(system, "plumbline-github-app", "github-application-id"))...)
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	app, err := e.kube.CoreV1().Secrets(system).Get(t.Context(), "plumbline-github-app", metav1.GetOptions{})
	if err != nil || len(app.Data) != 1 {
		t.Errorf("%v: the App's Secret has %d keys", err, len(app.Data))
	}
	e.says("Secret plumbline/plumbline-github-app exists already", "Repository plumbline/pipelines-as-code exists already")
}

func TestStartRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(e *env)
		want   string
	}{
		"a cluster without PaC": {func(e *env) {
			for _, name := range []string{pac.ControllerName, pac.WatcherName, pac.WebhookName} {
				_ = e.kube.Tracker().Delete(deployments(), pacNS, name)
			}
		}, "nothing to move from"},
		"a stopped watcher": {func(e *env) {
			stopped := deployment(pacNS, pac.WatcherName)
			stopped.Spec.Replicas, stopped.Status.Replicas = ptr.To[int32](0), 0
			_ = e.kube.Tracker().Update(deployments(), stopped, pacNS)
		}, "Deployment openshift-pipelines/pipelines-as-code-watcher does not run"},
		"two installations of PaC": {func(e *env) {
			e.put(deployment("pipelines-as-code", pac.ControllerName))
		}, "in the namespaces openshift-pipelines, pipelines-as-code"},
		"no Service of PaC": {func(e *env) {
			_ = e.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("services"), pacNS, pac.ControllerName)
		}, "--pac-url"},
		"a cluster without Plumbline": {func(e *env) {
			_ = e.kube.Tracker().Delete(deployments(), system, "plumbline-receiver")
		}, "install Plumbline first"},
		"namespaces that are served already": {func(e *env) { e.set("serve-namespaces", "team-a, ci-*") }, `"team-a, ci-*"`},
		"another URL of PaC": {func(e *env) {
			e.set("pipelines-as-code-url", "http://elsewhere", "serve-namespaces", system)
		}, "listens on " + pacURL},
		"a URL without a restriction": {func(e *env) { e.set("pipelines-as-code-url", pacURL) }, "serves every namespace"},
		"Repositories that Plumbline serves": {func(e *env) {
			e.set()
			for _, namespace := range []string{"team-d", "team-c", "team-b", "team-a", "team-f", "team-e"} {
				if err := e.own.Tracker().Add(claim(app(namespace))); err != nil {
					e.Fatal(err)
				}
			}
		}, "would all return to Pipelines-as-Code, for example team-a/app"},
		"missing rights": {func(e *env) {
			e.put(theirs()...)
			e.allow("create secrets", "patch configmaps")
		}, "create secrets in namespace plumbline\n  patch configmaps in namespace plumbline\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			test.change(e)
			e.kube.ClearActions()
			e.refused(e.start(), test.want)
		})
	}
}

// A call that fails at any point is repeated. A namespace that has moved meanwhile stays moved.
func TestStartContinues(t *testing.T) {
	for n := 1; ; n++ {
		e := newEnv(t, globalRepository())
		e.put(theirs()...)
		e.failAt(n)
		first := e.start()
		e.failAt(0)
		if err := e.start(); err != nil {
			t.Fatalf("after call %d failed: %v", n, err)
		}
		if got := e.data(); got["pipelines-as-code-url"] != pacURL || got["serve-namespaces"] != system ||
			got["application-name"] != "Acme CI" {
			t.Errorf("after call %d failed: %v", n, got)
		}
		for _, name := range []string{"plumbline-github-app", "gitlab"} {
			if _, err := e.kube.CoreV1().Secrets(system).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				t.Errorf("after call %d failed: %v", n, err)
			}
		}
		if first == nil {
			if n < 12 {
				t.Fatalf("only %d calls were made", n)
			}
			break
		}
	}
	e := newEnv(t)
	e.set("pipelines-as-code-url", pacURL, "serve-namespaces", "plumbline, team-a")
	if err := e.start(); err != nil || len(e.writes()) > 0 {
		t.Errorf("%v; changed %v", err, e.writes())
	}
}

// PaC's webhook refuses a Repository without a URL outside of PaC's own namespace (v0.49.0,
// pkg/webhook/validation.go).
func TestStartCopiesGlobalRepositoryPastPaCsWebhook(t *testing.T) {
	e := newEnv(t, globalRepository())
	e.put(append(theirs(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "validation.pipelinesascode.tekton.dev"},
		Webhooks:   []admissionv1.ValidatingWebhook{{Name: "validation.pipelinesascode.tekton.dev"}},
	})...)
	denied, creates := errors.New(`admission webhook "validation.pipelinesascode.tekton.dev" denied the request: `+
		"URL must be set"), 0
	e.own.PrependReactor("create", "repositories", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if creates++; creates < 3 { // the API server has not seen the change yet
			return true, nil, denied
		}
		configs := e.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		config, err := configs.Get(t.Context(), "validation.pipelinesascode.tekton.dev", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		selector, err := metav1.LabelSelectorAsSelector(config.Webhooks[0].NamespaceSelector)
		if config.Webhooks[0].NamespaceSelector == nil {
			selector = labels.Everything()
		}
		if err != nil || selector.Matches(labels.Set{corev1.LabelMetadataName: a.GetNamespace()}) {
			return true, nil, denied
		}
		return false, nil, nil
	})
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	e.says("Repository plumbline/pipelines-as-code was created", "it does not check namespace plumbline")
	e.kube.ClearActions()
	e.own.ClearActions()
	if err := e.start(); err != nil || len(e.writes()) > 0 {
		t.Errorf("again: %v, changed %v", err, e.writes())
	}
}
