// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// shared starts the one cluster of this test binary when a test first needs it.
type shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

var only shared

func TestMain(m *testing.M) {
	code := m.Run()
	if only.cluster != nil {
		only.cluster.Stop()
	}
	os.Exit(code)
}

// theCluster returns the cluster that the tests share.
func theCluster(t *testing.T) *Cluster {
	t.Helper()
	only.once.Do(func() {
		begin := time.Now()
		only.cluster, only.err = Start(context.Background(), Options{Progress: os.Stderr})
		fmt.Fprintf(os.Stderr, "the cluster started in %s\n", time.Since(begin).Round(10*time.Millisecond))
	})
	if only.err != nil {
		t.Fatal(only.err)
	}
	return only.cluster
}

// within bounds one test.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// run is a PipelineRun with one task of two steps per name, one after another.
func run(namespace, name string, annotations map[string]string, tasks ...string) *unstructured.Unstructured {
	o := object("tekton.dev/v1", "PipelineRun", namespace, name)
	o.SetAnnotations(annotations)
	var list []any
	for i, task := range tasks {
		entry := map[string]any{
			"name": task,
			"taskSpec": map[string]any{"steps": []any{
				map[string]any{"name": "one", "image": "test.invalid/any", "script": "true"},
				map[string]any{"name": "two", "image": "test.invalid/any", "command": []any{"true"}},
			}},
		}
		if i > 0 {
			entry["runAfter"] = []any{tasks[i-1]}
		}
		list = append(list, entry)
	}
	o.Object["spec"] = map[string]any{"pipelineSpec": map[string]any{"tasks": list}}
	return o
}

func createRun(ctx context.Context, config *rest.Config, run *unstructured.Unstructured, dryRun ...string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(PipelineRuns()).Namespace(run.GetNamespace()).
		Create(ctx, run, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// says fails the test unless the error's text has every part.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if text := err.Error(); !strings.Contains(text, part) {
			t.Errorf("the error lacks %q: %s", part, text)
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
