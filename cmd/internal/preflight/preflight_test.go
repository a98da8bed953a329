// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// test/installation finds each problem on a real API server. These tests are about what such a
// server cannot easily be made to say.

func checker(t *testing.T, objects ...runtime.Object) (*Checker, *fake.Clientset) {
	t.Helper()
	want, err := readWanted()
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleClientset(objects...)
	return &Checker{
		Options: Options{Component: Controller, Namespace: "plumbline", AppSecret: "app"}, kube: client, want: want,
	}, client
}

func deployment(namespace, name string, replicas *int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{Replicas: replicas},
	}
}

// listsByName makes the fake client apply a field selector for the name, as the API server does.
func listsByName(client *fake.Clientset) {
	client.PrependReactor("list", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
		restrictions := a.(clienttesting.ListAction).GetListRestrictions()
		name, one := restrictions.Fields.RequiresExactMatch("metadata.name")
		if !one || a.GetNamespace() != "" {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "",
				errors.New("only by name, in all namespaces"))
		}
		all, err := client.Tracker().List(a.GetResource(), appsv1.SchemeGroupVersion.WithKind("Deployment"), "")
		list, _ := all.(*appsv1.DeploymentList)
		if err == nil {
			list.Items = slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name != name })
		}
		return true, list, err
	})
}

func TestRunningPaC(t *testing.T) {
	none := int32(0)
	operated := deployment("tekton-pipelines", "pipelines-as-code-watcher", nil)
	operated.OwnerReferences = []metav1.OwnerReference{{Kind: "TektonInstallerSet", Name: "pac-main-deployment-x"}}
	for name, test := range map[string]struct {
		objects   []runtime.Object
		fails     error
		coexist   bool
		fatal     int
		says      string
		unchecked int
		err       bool
	}{
		"there is none": {},
		"the watcher runs": {objects: []runtime.Object{
			deployment("pipelines-as-code", "pipelines-as-code-watcher", nil),
		}, fatal: 1, says: "kubectl -n pipelines-as-code scale deployment pipelines-as-code-watcher"},
		"the operator's controller runs": {
			objects: []runtime.Object{deployment("openshift-pipelines", "pipelines-as-code-controller", nil)}, fatal: 1,
		},
		"on plain Kubernetes": {objects: []runtime.Object{
			deployment("tekton-pipelines", "pipelines-as-code-controller", nil),
		}, fatal: 1, says: "Deployment tekton-pipelines/pipelines-as-code-controller runs"},
		"in any other namespace": {objects: []runtime.Object{deployment("ci", "pipelines-as-code-watcher", nil)},
			fatal: 1, says: "Deployment ci/pipelines-as-code-watcher runs"},
		"in two namespaces": {objects: []runtime.Object{
			deployment("ci", "pipelines-as-code-controller", nil), deployment("tekton-pipelines", "pipelines-as-code-controller",
				nil), deployment("tekton-pipelines", "pipelines-as-code-watcher", nil),
		}, fatal: 3},
		"the operator would scale it up": {
			objects: []runtime.Object{operated}, fatal: 1, says: "the Tekton operator scales it up again",
		},
		"it is scaled to nothing": {
			objects: []runtime.Object{deployment("tekton-pipelines", "pipelines-as-code-watcher", &none)},
		},
		"its webhook starts nothing": {
			objects: []runtime.Object{deployment("pipelines-as-code", "pipelines-as-code-webhook", nil)},
		},
		"it runs and is wanted": {
			objects: []runtime.Object{deployment("pipelines-as-code", "pipelines-as-code-watcher", nil)}, coexist: true,
		},
		"it may not be listed: not certain, so not Fatal": {
			fails: apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "x", errors.New("no")), unchecked: 2,
			says: "let this account list it",
		},
		"the API server does not answer: ask it again": {fails: errors.New("connection refused"), err: true},
		"the API server is overloaded: ask it again":   {fails: apierrors.NewTooManyRequests("later", 1), err: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := checker(t, test.objects...)
			c.Coexist = test.coexist
			listsByName(client)
			if test.fails != nil {
				client.PrependReactor("*", "deployments",
					func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.fails })
			}
			findings, err := c.RunningPaC(t.Context())
			fatal := 0
			for _, f := range findings {
				if f.Fatal {
					fatal++
				}
			}
			if fatal != test.fatal || len(findings)-fatal != test.unchecked || (err != nil) != test.err {
				t.Errorf("%v, %v; want %d that are Fatal, %d that could not be checked, an error: %v", findings, err, test.fatal,
					test.unchecked, test.err)
			}
			if test.says != "" && !slices.ContainsFunc(findings,
				func(f Finding) bool { return strings.Contains(f.String(), test.says) }) {
				t.Errorf("%v, want one that says %q", findings, test.says)
			}
		})
	}
}

// With every right there is no finding. With none there is one for each resource of the roles that
// are bound everywhere. If the API server does not respond, each of them is one.
func TestRights(t *testing.T) {
	for name, test := range map[string]struct {
		allowed bool
		err     error
		says    string
	}{
		"all are there":                 {allowed: true},
		"none is there":                 {says: "does not let plumbline-controller get, list, watch, create, patch, delete pipelineruns.tekton.dev in any namespace"},
		"the API server does not say":   {err: errors.New("overloaded"), says: "could not be checked: overloaded"},
		"a subresource is named as one": {says: "update gitevents.plumbline.dev/status in namespace plumbline"},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := checker(t)
			client.PrependReactor("create", "selfsubjectaccessreviews",
				func(a clienttesting.Action) (bool, runtime.Object, error) {
					review := &authorizationv1.SelfSubjectAccessReview{}
					review.Status.Allowed = test.allowed
					return true, review, test.err
				})
			findings := c.rights(t.Context())
			if test.says == "" {
				if len(findings) != 0 {
					t.Error(findings)
				}
				return
			}
			if !slices.ContainsFunc(findings,
				func(f Finding) bool { return strings.Contains(f.String(), test.says) && f.Remedy != "" }) {
				t.Errorf("%v, want one that says %q", findings, test.says)
			}
			if slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Object, narrowed) }) {
				t.Errorf("%v: a role that may be bound in chosen namespaces is held to be bound everywhere", findings)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	controlled := func(kind, name, hash string) *corev1.Pod {
		yes := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "it", OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}},
		}}
		if hash != "" {
			pod.Labels = map[string]string{"pod-template-hash": hash}
		}
		return pod
	}
	for want, pod := range map[string]*corev1.Pod{
		"Deployment plumbline-receiver":  controlled("ReplicaSet", "plumbline-receiver-5d8f", "5d8f"),
		"ReplicaSet plumbline-receiver":  controlled("ReplicaSet", "plumbline-receiver", ""),
		"ReplicaSet other-5d8f":          controlled("ReplicaSet", "other-5d8f", "77aa"),
		"StatefulSet plumbline-receiver": controlled("StatefulSet", "plumbline-receiver", ""),
		"StatefulSet it-5d8f":            controlled("StatefulSet", "it-5d8f", "5d8f"),
		"Pod it":                         {ObjectMeta: metav1.ObjectMeta{Name: "it"}},
	} {
		if got := owner(pod); got != want {
			t.Errorf("owner is %q, want %q", got, want)
		}
	}
}

func TestOlder(t *testing.T) {
	for version, old := range map[string]bool{"v0.56.1": true, "v1.0.0": false, "v1.15.0": false, "1.31.4+k3s1": false,
		"devel": false, "": false} {
		if got := older("Tekton", version, oldestTekton, "upgrade").Object != ""; got != old {
			t.Errorf("%q is too old: %v, want %v", version, got, old)
		}
	}
}

func TestMissingFields(t *testing.T) {
	object := func(properties map[string]any) jsonSchema {
		return jsonSchema{"type": "object", "properties": properties}
	}
	want := object(map[string]any{
		"metadata": map[string]any{"type": "object"},
		"spec": map[string]any(object(map[string]any{
			"url": map[string]any{"type": "string"},
			"list": map[string]any{
				"type": "array", "items": map[string]any(object(map[string]any{"name": map[string]any{"type": "string"}})),
			},
			"any": map[string]any(object(map[string]any{"deep": map[string]any{"type": "string"}})),
		})),
	})
	got := object(map[string]any{
		"spec": map[string]any(object(map[string]any{
			"list": map[string]any{"type": "array", "items": map[string]any(object(nil))},
			"any":  map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		})),
	})
	lacks := missing(want, got, "")
	slices.Sort(lacks)
	if diff := cmp.Diff([]string{".spec.list[].name", ".spec.url"}, lacks); diff != "" {
		t.Error(diff)
	}
	if lacks := missing(want, want, ""); len(lacks) != 0 {
		t.Errorf("a schema lacks %v of itself", lacks)
	}
}

// A schema that is no JSON, or may not be read, is a finding and does not end the preflight.
func TestDefinitionsThatCannotBeRead(t *testing.T) {
	for name, answer := range map[string]func(context.Context, string) ([]byte, error){
		"no JSON":   func(context.Context, string) ([]byte, error) { return []byte("<html>"), nil },
		"forbidden": func(context.Context, string) ([]byte, error) { return nil, errors.New("forbidden") },
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := checker(t)
			c.fetch = answer
			findings := c.definitions(t.Context())
			if len(findings) != len(c.want.definitions) || !strings.Contains(findings[0].String(), "could not be checked") {
				t.Error(findings)
			}
		})
	}
}

// Plumbline waits for a definition that is missing, and for an API server that does not respond,
// but not for what its account may not read.
func TestAwaited(t *testing.T) {
	resource := schema.GroupResource{Resource: "openapi"}
	for name, tc := range map[string]struct {
		answer  error
		awaited bool
		fails   bool
	}{
		"not served":    {answer: apierrors.NewNotFound(resource, "v3"), awaited: true},
		"forbidden":     {answer: apierrors.NewForbidden(resource, "v3", errors.New("no"))},
		"no connection": {answer: errors.New("connection refused"), fails: true},
		"overloaded":    {answer: apierrors.NewTooManyRequests("later", 1), fails: true},
		"unavailable":   {answer: apierrors.NewServiceUnavailable("starting"), fails: true},
		"time limit":    {answer: apierrors.NewTimeoutError("slow", 1), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := checker(t)
			c.fetch = func(context.Context, string) ([]byte, error) { return nil, tc.answer }
			awaited, err := c.Awaited(t.Context())
			if (len(awaited) > 0) != tc.awaited || (err != nil) != tc.fails {
				t.Errorf("%v, %v", awaited, err)
			}
			if tc.awaited && len(awaited) != len(c.want.definitions)+1 { // and Tekton
				t.Errorf("%d are awaited: %v", len(awaited), awaited)
			}
		})
	}
}
