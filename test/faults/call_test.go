// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// call is one request to an API server, made once: client-go's own retries of an answer with
// Retry-After are left out.
type call struct {
	method    string
	resource  schema.GroupVersionResource
	namespace string
	name      string // of the object in the path; empty for a create or a list
	body      any
	params    map[string]string
	headers   map[string]string
}

// create is a PipelineRun that is created; its label chooses its webhook.
func create(label string) call {
	return call{method: http.MethodPost, resource: cluster.PipelineRuns(), namespace: ci, body: run(label)}
}

// patch changes an object with a merge patch.
func patch(resource schema.GroupVersionResource, namespace, name, body string) call {
	return call{
		method: http.MethodPatch, resource: resource, namespace: namespace, name: name, body: []byte(body),
		headers: map[string]string{"Content-Type": "application/merge-patch+json"},
	}
}

func (c call) with(key, value string) call {
	params := map[string]string{key: value}
	for k, v := range c.params {
		params[k] = v
	}
	c.params = params
	return c
}

func (c call) in(namespace string) call { c.namespace = namespace; return c }

func (c call) dry() call { return c.with("dryRun", metav1.DryRunAll) }

// do makes the call with its own client.
func (c call) do(ctx context.Context, config *rest.Config) error {
	_, err := c.answer(ctx, config)
	return err
}

func (c call) answer(ctx context.Context, config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	version := c.resource.GroupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/apis", scheme.Codecs.WithoutConversion()
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	request := client.Verb(c.method).Resource(c.resource.Resource).MaxRetries(0)
	if c.namespace != "" {
		request = request.Namespace(c.namespace)
	}
	if c.name != "" {
		request = request.Name(c.name)
	}
	switch body := c.body.(type) {
	case nil:
	case []byte:
		request = request.Body(body)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		request = request.SetHeader("Content-Type", "application/json").Body(data)
	}
	for key, value := range c.headers {
		request = request.SetHeader(key, value)
	}
	for key, value := range c.params {
		request = request.Param(key, value)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// refused makes the call once it is refused: the API server sees a new webhook, policy or quota a
// moment after it is stored. Until then it makes dry runs.
func (w *environment) refused(t *testing.T, c call) error {
	t.Helper()
	_ = until(t, func() error { return c.dry().do(t.Context(), w.config) })
	return c.do(t.Context(), w.config)
}

// until repeats a call until it fails, and returns the error.
func until(t *testing.T, try func() error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	err := cluster.Poll(ctx, 50*time.Millisecond, func() error {
		if last = try(); last == nil {
			return errors.New("it works")
		}
		return nil
	})
	if err != nil {
		t.Fatal("nothing is refused: ", err)
	}
	return last
}

// works waits until a call succeeds.
func works(t *testing.T, try func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, cluster.Poll(ctx, 50*time.Millisecond, func() error { return try(ctx) }))
}

// run is a PipelineRun with one task, as JSON has it.
func run(label string) map[string]any {
	steps := []any{map[string]any{"name": "one", "image": "test.invalid/any", "script": "true"}}
	tasks := []any{map[string]any{"name": "one", "taskSpec": map[string]any{"steps": steps}}}
	return map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
		"metadata": map[string]any{"name": "build", "labels": map[string]any{"row": label}},
		"spec":     map[string]any{"pipelineSpec": map[string]any{"tasks": tasks}},
	}
}

// named is an object with another name.
func named(object map[string]any, name string) map[string]any {
	object["metadata"].(map[string]any)["name"] = name
	return object
}

// configMap is an object that Tekton does not check.
func configMap(label string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "settings", "labels": map[string]any{"row": label}},
	}
}

// pod is a Pod that asks for two CPUs.
func pod() map[string]any {
	limits := map[string]any{"limits": map[string]any{"cpu": "2"}}
	containers := []any{map[string]any{"name": "one", "image": "test.invalid/any", "resources": limits}}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "build"},
		"spec": map[string]any{"containers": containers},
	}
}

func post(resource, namespace string, body any) call {
	return call{
		method: http.MethodPost, resource: corev1.SchemeGroupVersion.WithResource(resource), namespace: namespace, body: body,
	}
}

// get reads one object.
func get(resource schema.GroupVersionResource, namespace, name string) call {
	return call{method: http.MethodGet, resource: resource, namespace: namespace, name: name}
}
