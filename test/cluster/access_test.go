// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// reader is a service account that may get and watch PipelineRuns.
const reader = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %[1]s}
rules:
- {apiGroups: [tekton.dev], resources: [pipelineruns], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: %[1]s}
`

func TestServiceAccountThroughTheProxy(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	namespace := c.Namespace(t, "access")
	if err := c.Apply(ctx, fmt.Appendf(nil, reader, namespace)); err != nil {
		t.Fatal(err)
	}
	proxy, client := proxied(ctx, t, c, namespace)
	runs := client.Resource(PipelineRuns()).Namespace(namespace)
	if err := Poll(ctx, 50*time.Millisecond, func() error { // the API server hears of a role a moment later
		_, err := runs.List(ctx, metav1.ListOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	proxy.Reset()
	watch, err := runs.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	_, err = runs.Create(ctx, run(namespace, "x", nil, "a"), metav1.CreateOptions{})
	want := Forbidden("system:serviceaccount:"+namespace+":reader", "create", namespace)
	if diff := cmp.Diff(want, statusOf(t, err)); diff != "" {
		t.Errorf("the refusal (-Forbidden() +the API server's):\n%s", diff)
	}
	if err := createRun(ctx, c.RESTConfig(), run(namespace, "x", nil, "a")); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-watch.ResultChan():
		if event.Type != "ADDED" {
			t.Errorf("the watch brought %s", event.Type)
		}
	case <-ctx.Done():
		t.Error("the watch brought nothing")
	}
	var got []Call
	for _, call := range proxy.Calls() {
		call.N = 0
		got = append(got, call)
	}
	log := []Call{
		{Verb: "watch", Group: "tekton.dev", Resource: "pipelineruns", Namespace: namespace, Status: 200},
		{Verb: "create", Group: "tekton.dev", Resource: "pipelineruns", Namespace: namespace, Name: "x", Status: 403},
	}
	if diff := cmp.Diff(log, got, cmpopts.IgnoreFields(Call{}, "Time", "UserAgent")); diff != "" {
		t.Errorf("the proxy's log (-want +got):\n%s", diff)
	}
}

func TestLostAnswerOfACreateThatLanded(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	namespace := c.Namespace(t, "lost")
	proxy, err := NewProxy(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	proxy.Add(Rule{Match: func(c Call) bool { return c.Is("create", "pipelineruns") }, Count: 1, Do: ApplyThenDrop()})
	config := c.RESTConfig()
	config.Host, config.CAData = proxy.URL, nil
	if err := createRun(ctx, config, run(namespace, "x", nil, "a")); err == nil {
		t.Fatal("the answer arrived")
	}
	if err := createRun(ctx, config, run(namespace, "x", nil, "a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second create: %v, want AlreadyExists", err)
	}
}

const (
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.test.plumbline.dev}
spec:
  group: test.plumbline.dev
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
)

func TestApplyDefinesAKindAndUsesItAtOnce(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	namespace := c.Namespace(t, "apply")
	thing := "apiVersion: test.plumbline.dev/v1\nkind: Thing\nmetadata: {name: x, namespace: " + namespace + "}\n"
	for range 2 { // it can be repeated
		if err := c.Apply(ctx, []byte("# first\n---\n"+thing+"---"+definition)); err != nil {
			t.Fatal(err)
		}
	}
	says(t, c.Apply(ctx, []byte("metadata: {}")), "no apiVersion")
	missing := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: no-such}\n"
	if err := c.Apply(ctx, []byte(missing)); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}

// proxied is a client of the service account reader, as a process gets it.
func proxied(ctx context.Context, t *testing.T, c *Cluster, namespace string) (*Proxy, dynamic.Interface) {
	t.Helper()
	proxy, err := NewProxy(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	token, err := c.Token(ctx, namespace, "reader")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.Kubeconfig(path, token); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return proxy, client
}

// statusOf is the Status that the server answered, as JSON brings it back.
func statusOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		t.Fatalf("not an answer of the API server: %v", err)
	}
	data, err := json.Marshal(answer.Status())
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// A campaign of an hour settles for some more minutes: with the hour that tokens have by default every call was refused at its end.
func TestATokenOutlivesACampaign(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	token, err := c.Token(ctx, c.Namespace(t, "token"), "default")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts, want the three of a JWT", len(parts))
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var lives struct{ Exp, Iat int64 }
	if err := json.Unmarshal(claims, &lives); err != nil {
		t.Fatal(err)
	}
	if lives.Exp-lives.Iat != tokenSeconds {
		t.Errorf("the token is valid for %d seconds, want %d", lives.Exp-lives.Iat, tokenSeconds)
	}
}
