// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (e *env) move(change func(*Namespaces), names ...string) error {
	n := &Namespaces{Migration: e.Migration, Names: names}
	change(n)
	return n.Run(e.Context())
}

func forward(*Namespaces) {}

func back(n *Namespaces) { n.Back = true }

// newMoving is a migration that has started, with the Repositories. Its controller claims what
// serve-namespaces says when the claims are listed.
func newMoving(t *testing.T, repositories ...*pacv1alpha1.Repository) *env {
	t.Helper()
	var objects []runtime.Object
	for _, repository := range repositories {
		objects = append(objects, repository)
	}
	e := newEnv(t, objects...)
	e.withRuns()
	e.set("pipelines-as-code-url", pacURL, "serve-namespaces", system, "webhook-url", "https://hooks.example.com")
	e.own.PrependReactor("list", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := entries(e.servedNow())
		for _, repository := range repositories {
			c := claim(repository)
			_ = e.own.Tracker().Delete(claimKind(), system, c.Name)
			for _, name := range list {
				if name == repository.Namespace {
					_ = e.own.Tracker().Add(c)
				}
			}
		}
		return false, nil, nil
	})
	return e
}

func app(namespace string) *pacv1alpha1.Repository {
	return repository(namespace, "app", "https://git.example.com/acme/"+namespace)
}

func TestNamespaceMovesThereAndBack(t *testing.T) {
	e := newMoving(t, app("team-a"), app("team-b"), app("team-c"))
	for _, step := range []struct {
		change func(*Namespaces)
		names  []string
		want   string
	}{
		{forward, []string{"team-b"}, "plumbline, team-b"},
		{forward, []string{"team-b"}, "plumbline, team-b"},
		{forward, []string{"team-c", "team-a", "team-a"}, "plumbline, team-b, team-a, team-c"},
		{back, []string{"team-b"}, "plumbline, team-a, team-c"},
		{back, []string{"team-c", "team-a"}, "plumbline"},
		{func(n *Namespaces) { n.All = true }, nil, "plumbline, team-a, team-b, team-c"},
		{func(n *Namespaces) { n.All, n.Back = true, true }, nil, "plumbline"},
	} {
		e.out.Reset()
		if err := e.move(step.change, step.names...); err != nil {
			t.Fatal(err)
		}
		if got := e.data()["serve-namespaces"]; got != step.want {
			t.Errorf("it serves %q, want %q", got, step.want)
		}
		for _, name := range step.names {
			n := &Namespaces{}
			step.change(n)
			e.says(
				map[bool]string{false: "Repository " + name + "/app claimed", true: "Repository " + name + "/app released"}[n.Back],
			)
		}
	}
}

func TestNamespaceRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		names  []string
		change func(*Namespaces)
		before func(e *env)
		want   string
	}{
		"an unknown namespace":             {[]string{"tema"}, forward, nil, "namespace tema does not exist"},
		"a namespace without a Repository": {[]string{"empty"}, forward, nil, "namespace empty has no Repository"},
		"each wrong name of several": {
			[]string{"team-a", "tema", "empty"}, forward, nil, "nothing to move\nnamespace tema does not exist",
		},
		"Plumbline's own namespace": {[]string{system}, back, nil, "which it always serves"},
		"no name":                   {nil, forward, nil, "or add --all"},
		"names and --all": {
			[]string{"team-a"}, func(n *Namespaces) { n.All = true }, nil, "leave out their names",
		},
		"flags for PaC's runs on a way back": {
			[]string{"team-a"}, func(n *Namespaces) { n.Back, n.Wait = true, true }, nil, "leave them out with --back",
		},
		"a migration that has not started": {[]string{"team-a"}, forward, func(e *env) {
			e.set("serve-namespaces", system)
		}, "run plumb migrate start first"},
		"a way back to a stopped PaC": {[]string{"team-a"}, back, func(e *env) {
			_ = e.kube.Tracker().Delete(deployments(), pacNS, pac.WatcherName)
		}, "Pipelines-as-Code does not run"},
		"a glob that keeps a namespace": {[]string{"team-a"}, back, func(e *env) {
			e.set("pipelines-as-code-url", pacURL, "serve-namespaces", "plumbline, team-*")
		}, "an entry with * or !"},
		"an empty list, which means every namespace": {[]string{"team-a"}, back, func(e *env) {
			e.set("pipelines-as-code-url", pacURL)
		}, "is empty, so Plumbline serves every namespace"},
		"an exclusion": {[]string{"team-a"}, forward, func(e *env) {
			e.set("pipelines-as-code-url", pacURL, "serve-namespaces", "plumbline, !team-a")
		}, "an entry with * or !"},
		"a value that is not valid": {[]string{"team-a"}, forward, func(e *env) {
			e.set("pipelines-as-code-url", pacURL, "serve-namespaces", "Team")
		}, "is not valid"},
		"missing rights": {[]string{"team-a"}, func(n *Namespaces) { n.CancelQueued = true }, func(e *env) {
			e.allow("patch configmaps", "patch pipelineruns")
		}, "patch configmaps in namespace plumbline\n  patch pipelineruns.tekton.dev in namespace team-a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newMoving(t, app("team-a"))
			e.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}})
			if test.before != nil {
				test.before(e)
			}
			e.kube.ClearActions()
			e.refused(e.move(test.change, test.names...), test.want)
		})
	}
}

// A call that fails at any point is repeated. A namespace is never served by two: its list is
// changed in one patch.
func TestNamespaceContinues(t *testing.T) {
	for _, way := range []struct {
		change        func(*Namespaces)
		before, after string
	}{
		{forward, "plumbline, team-b", "plumbline, team-b, team-a"}, {back, "plumbline, team-a, team-b", "plumbline"},
	} {
		for n := 1; ; n++ {
			e := newMoving(t, app("team-a"), app("team-b"))
			e.set("pipelines-as-code-url", pacURL, "serve-namespaces", way.before)
			e.failAt(n)
			first := e.move(way.change, "team-a", "team-b")
			e.failAt(0)
			if got := e.data()["serve-namespaces"]; got != way.before && got != way.after {
				t.Errorf("after call %d failed: %q", n, got)
			}
			if err := e.move(way.change, "team-a", "team-b"); err != nil {
				t.Fatalf("after call %d failed: %v", n, err)
			}
			if got := e.data()["serve-namespaces"]; got != way.after {
				t.Errorf("after call %d failed: %q", n, got)
			}
			if first == nil {
				if n < 8 {
					t.Fatalf("only %d calls were made", n)
				}
				break
			}
		}
	}
}

// An empty list would mean every namespace, so the list always has Plumbline's own.
func TestNamespaceNeverEmptiesTheList(t *testing.T) {
	e := newMoving(t, app("team-a"))
	e.set("pipelines-as-code-url", pacURL, "serve-namespaces", "team-a")
	if err := e.move(back, "team-a"); err != nil || e.data()["serve-namespaces"] != system {
		t.Errorf("%v: it serves %q", err, e.data()["serve-namespaces"])
	}
}

// Another administrator moves another namespace between the read and the patch.
func TestNamespaceKeepsAnotherMove(t *testing.T) {
	e := newMoving(t, app("team-a"), app("team-b"))
	once := true
	e.kube.PrependReactor("patch", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !once {
			return false, nil, nil
		}
		once = false
		sent, _ := a.(clienttesting.PatchAction)
		if sent == nil || !strings.Contains(string(sent.GetPatch()), `"resourceVersion"`) {
			t.Errorf("%v is not for one version", a)
		}
		_ = e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "plumbline"},
			Data:       map[string]string{"pipelines-as-code-url": pacURL, "serve-namespaces": "plumbline, team-b"},
		}, system)
		return true, nil, conflict()
	})
	if err := e.move(forward, "team-a"); err != nil {
		t.Fatal(err)
	}
	if got := e.data()["serve-namespaces"]; got != "plumbline, team-b, team-a" {
		t.Errorf("it serves %q", got)
	}
}

func TestNamespaceSaysThatPaCKeepsAURL(t *testing.T) {
	kept := app("team-a")
	kept.Status.Conditions = append(kept.Status.Conditions, apis.Condition{
		Type:    pacv1alpha1.RepositoryURL,
		Status:  corev1.ConditionFalse,
		Reason:  "Claimed",
		Message: "it belongs to team-b/app",
	})
	e := newMoving(t, kept)
	e.own.PrependReactor("list", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1alpha1.RepositoryClaimList{}, nil
	})
	if err := e.move(forward, "team-a"); err != nil {
		t.Fatal(err)
	}
	e.says("Repository team-a/app is not served: it belongs to team-b/app")
}

func TestNamespaceSaysWhatBecameOfRepositories(t *testing.T) {
	second, refused := app("team-a"), repository("team-a", "refused", "https://git.example.com/acme/refused")
	second.Name = "second"
	refused.Status.Conditions = append(refused.Status.Conditions, apis.Condition{
		Type:    pacv1alpha1.RepositoryCredentials,
		Status:  corev1.ConditionFalse,
		Reason:  "CredentialsMissing",
		Message: "no token",
	})
	lab := repository("team-a", "lab", "https://gitlab.example.com/acme/lab.git")
	lab.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab"}
	hub := repository("team-a", "hub", "https://github.com/acme/hub")
	hub.Spec.GitProvider = &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "token"}}
	e := newMoving(t, second, app("team-a"), refused, lab, hub)
	if err := e.move(forward, "team-a"); err != nil {
		t.Fatal(err)
	}
	e.says(
		"Repository team-a/refused claimed, but CredentialsMissing: no token",
		"Repository team-a/second is not served: its URL belongs to Repository team-a/app",
		"https://hooks.example.com/",
		"https://gitlab.example.com/acme/lab/-/hooks",
		"plumb webhook add lab --namespace team-a",
		"https://github.com/acme/hub/settings/hooks",
	)
}

func TestNamespaceNamesRepositoriesThatAreNotClaimed(t *testing.T) {
	e := newMoving(t)
	if err := e.own.Tracker().Add(app("team-a")); err != nil {
		t.Fatal(err)
	}
	err := e.move(forward, "team-a")
	if err == nil || !strings.Contains(err.Error(), "the URLs of 1 Repositories are not claimed after 200ms, for example that of team-a/app") {
		t.Error(err)
	}
}

// Another administrator moves the namespace back while this one waits for its claims.
func TestNamespaceSaysThatAMoveIsUndone(t *testing.T) {
	e := newMoving(t, app("team-a"))
	e.own.PrependReactor("list", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		e.set("pipelines-as-code-url", pacURL, "serve-namespaces", system)
		return true, &v1alpha1.RepositoryClaimList{}, nil
	})
	err := e.move(forward, "team-a")
	if err == nil || !strings.Contains(err.Error(), "was changed meanwhile, and the move is undone") {
		t.Error(err)
	}
}

func TestNamespaceCancelsWhatWaits(t *testing.T) {
	e := newMoving(t, app("team-a"))
	waiting := golden(t, "waiting", map[string]string{"STATE": "queued"})
	waiting.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	running := golden(t, "running", map[string]string{"STATE": "started"})
	running.Status.StartTime = &metav1.Time{Time: time.Now()}
	e.create(waiting, running, ended(golden(t, "done", nil), "True", "Succeeded"))
	if err := e.move(forward, "team-a"); err != nil {
		t.Fatal(err)
	}
	e.says("team-a/waiting: queued", "team-a/running: running")
	if said := e.out.String(); strings.Contains(said, "team-a/done") || strings.Contains(said, "Cancelled") {
		t.Error(said)
	}
	err := e.move(func(n *Namespaces) { n.CancelQueued, n.Wait = true, true }, "team-a")
	if err == nil || !strings.Contains(err.Error(), "have not finished after") {
		t.Error(err)
	}
	e.says("Cancelled PipelineRun team-a/waiting")
	for name, want := range map[string]string{"waiting": "Cancelled", "running": ""} {
		if got := e.statusOf(name); got != want {
			t.Errorf("the spec.status of %s is %q, want %q", name, got, want)
		}
	}
}
