// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRunEndsAsItsAnnotationsSay(t *testing.T) {
	for _, test := range []struct {
		about       string
		annotations map[string]string
		status      string
		children    map[string]string // Succeeded of each TaskRun, by task
	}{
		{"without annotations every task succeeds", nil, "True",
			map[string]string{"build": "True", "check": "True"}},
		{"an exit code fails the first task, and the second never starts",
			map[string]string{ExitCodeAnnotation: "3"}, "False", map[string]string{"build": "False"}},
		{"a duration delays the success",
			map[string]string{DurationAnnotation: "300"}, "True", map[string]string{"build": "True", "check": "True"}},
	} {
		t.Run(test.about, func(t *testing.T) {
			c, ctx := theCluster(t), within(t, time.Minute)
			namespace := c.Namespace(t, "outcome")
			must(t, createRun(ctx, c.RESTConfig(), run(namespace, "x", test.annotations, "build", "check")))
			condition, err := c.WaitRun(ctx, namespace, "x")
			must(t, err)
			if condition.Status != test.status {
				t.Errorf("Succeeded is %+v, want %s", condition, test.status)
			}
			children := map[string]string{}
			for _, item := range taskRuns(ctx, t, c, namespace) {
				if test.status == "False" {
					failedAt(t, &item)
				}
				children[item.GetLabels()["tekton.dev/pipelineTask"]] = ConditionOf(&item, "Succeeded").Status
			}
			if diff := cmp.Diff(test.children, children); diff != "" {
				t.Errorf("TaskRuns (-want +got):\n%s", diff)
			}
		})
	}
}

// failedAt requires that the first step has the exit code that was asked for, and that the next one
// is skipped.
func failedAt(t *testing.T, taskRun *unstructured.Unstructured) {
	t.Helper()
	var got []any
	steps, _, _ := unstructured.NestedSlice(taskRun.Object, "status", "steps")
	for _, step := range steps {
		fields := step.(map[string]any)
		code, _, _ := unstructured.NestedInt64(fields, "terminated", "exitCode")
		got = append(got, []any{fields["name"], code, fields["terminationReason"]})
	}
	want := []any{[]any{"one", int64(3), "Error"}, []any{"two", int64(1), "Skipped"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestHeldRunRunsUntilReleased(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	namespace := c.Namespace(t, "hold")
	must(t, createRun(ctx, c.RESTConfig(), run(namespace, "x", map[string]string{HoldAnnotation: "true"}, "a", "b")))
	patience, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if condition, err := c.WaitRun(patience, namespace, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the held run ended: %+v, %v", condition, err)
	}
	must(t, c.Release(ctx, namespace, "x"))
	condition, err := c.WaitRun(ctx, namespace, "x")
	if err != nil || condition.Status != "True" {
		t.Fatalf("after the release: %+v, %v", condition, err)
	}
}

func TestKilledWebhookRefusesAndRecovers(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	namespace := c.Namespace(t, "refused")
	webhook := c.Part(TektonWebhook)
	must(t, webhook.Kill())
	t.Cleanup(func() {
		if !webhook.Running() {
			_ = webhook.Start(context.Background())
		}
	})
	// The first answer may tell of the old connection instead: EOF, broken pipe.
	err := untilRefused(ctx, t, "connection refused", func() error {
		return createRun(ctx, c.RESTConfig(), run(namespace, "x", nil, "a"))
	})
	err = rewritten(t, err, `svc:\d+/(.*) dial tcp \S+:`, "svc:443/$1 dial tcp 10.96.0.1:443:")
	if diff := cmp.Diff(WebhookRefused(), statusOf(t, err)); diff != "" {
		t.Errorf("the refusal (-WebhookRefused() +the API server's):\n%s", diff)
	}
	must(t, webhook.Start(ctx))
	if err := createRun(ctx, c.RESTConfig(), run(namespace, "x", nil, "a")); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestStartReportsWhyPartFails(t *testing.T) {
	c := theCluster(t)
	part := c.part("broken", []string{"--no-such-flag"}, func(context.Context) error { return errors.New("never") })
	part.path, part.spawn = c.Part(Etcd).path, c.spawn
	says(t, part.Start(within(t, time.Minute)), "starting broken", "the process exited", "no-such-flag")
	if part.Running() {
		t.Error("it runs")
	}
}

func TestClusterSecretsArePrivate(t *testing.T) {
	c := theCluster(t)
	for _, path := range []string{c.KubeconfigPath(), c.creds.tokenFile, c.creds.keyFile, c.creds.accountKey} {
		info, err := os.Stat(path)
		must(t, err)
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", path, mode)
		}
	}
	if log, err := os.ReadFile(c.Part(APIServer).Log()); err != nil || strings.Contains(string(log), c.creds.adminToken) {
		t.Errorf("the administrator's token is in the log, or %v", err)
	}
}

func taskRuns(ctx context.Context, t *testing.T, c *Cluster, namespace string) []unstructured.Unstructured {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
	list, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	return list.Items
}
