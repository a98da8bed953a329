// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	quota = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: runs, namespace: %s}
spec: {hard: {count/pipelineruns.tekton.dev: "1"}}
`
	// The policy is for one namespace: others share this cluster.
	policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [tekton.dev], apiVersions: [v1], operations: [CREATE], resources: [pipelineruns]}
  validations:
  - {expression: "false", message: nothing runs here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`
)

// The statuses of faults.go equal those that this API server really sends.
func TestFaultsMatchServer(t *testing.T) {
	for _, test := range []struct {
		about  string
		want   func(namespace string) metav1.Status
		really func(ctx context.Context, t *testing.T, c *Cluster, namespace string) error
	}{
		{"K7, an object that Tekton's webhook refuses",
			func(string) metav1.Status {
				return WebhookDenied("validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec")
			}, denied},
		{"K10, a ValidatingAdmissionPolicy",
			func(n string) metav1.Status { return PolicyDenied("x", n, "nothing runs here") }, againstPolicy},
		{"K12, a service account without a role",
			func(n string) metav1.Status { return Forbidden("system:serviceaccount:"+n+":default", "create", n) }, forbidden},
		{"K13, a ResourceQuota", func(string) metav1.Status { return QuotaExceeded("x") }, overQuota},
		{"K18, a namespace that does not exist", func(n string) metav1.Status { return NamespaceMissing(n + "-not") },
			func(ctx context.Context, _ *testing.T, c *Cluster, namespace string) error {
				return createRun(ctx, c.RESTConfig(), run(namespace+"-not", "x", nil, "a"))
			}},
		{"K21, an update of an old version", func(string) metav1.Status { return Conflict("x") }, outdated},
		{"K32, a wrong token", func(string) metav1.Status { return Unauthorized() }, wrongToken},
		{"K37, a change of a started run", func(string) metav1.Status { return RunStarted() }, changeStarted},
	} {
		t.Run(test.about, func(t *testing.T) {
			c, ctx := theCluster(t), within(t, time.Minute)
			namespace := c.Namespace(t, "faults")
			got := statusOf(t, test.really(ctx, t, c, namespace))
			if diff := cmp.Diff(test.want(namespace), got); diff != "" {
				t.Errorf("(-faults.go +server):\n%s", diff)
			}
		})
	}
}

// K19 is no Status: a client gets the same error from NotServed as from this API server for an
// unknown kind.
func TestNotServedMatchesServer(t *testing.T) {
	c, ctx := theCluster(t), within(t, time.Minute)
	proxy, err := NewProxy(c)
	must(t, err)
	t.Cleanup(proxy.Close)
	config := c.RESTConfig()
	config.Host, config.TLSClientConfig = proxy.URL, rest.TLSClientConfig{}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	unknown := PipelineRuns()
	unknown.Version = "v9"
	create := func() metav1.Status {
		_, err := client.Resource(unknown).Namespace("default").Create(ctx, run("default", "x", nil, "a"),
			metav1.CreateOptions{})
		return statusOf(t, err)
	}
	want := create()
	proxy.Add(Rule{Do: NotServed()})
	if diff := cmp.Diff(create(), want); diff != "" {
		t.Errorf("(-faults.go +server):\n%s", diff)
	}
}

func denied(ctx context.Context, _ *testing.T, c *Cluster, namespace string) error {
	empty := run(namespace, "x", nil)
	empty.Object["spec"] = map[string]any{"timeouts": map[string]any{"pipeline": "1h"}}
	return createRun(ctx, c.RESTConfig(), empty, metav1.DryRunAll)
}

func againstPolicy(ctx context.Context, t *testing.T, c *Cluster, namespace string) error {
	must(t, c.Apply(ctx, fmt.Appendf(nil, policy, namespace)))
	return untilRefused(ctx, t, "ValidatingAdmissionPolicy", func() error {
		return createRun(ctx, c.RESTConfig(), run(namespace, "x", nil, "a"), metav1.DryRunAll)
	})
}

func forbidden(ctx context.Context, t *testing.T, c *Cluster, namespace string) error {
	config := c.RESTConfig()
	var err error
	if config.BearerToken, err = c.Token(ctx, namespace, "default"); err != nil {
		t.Fatal(err)
	}
	return createRun(ctx, config, run(namespace, "x", nil, "a"))
}

// overQuota creates runs until the quota refuses one, and returns the refusal as if there had been
// one run: the server notices a new quota after a moment, and admits runs until then.
func overQuota(ctx context.Context, t *testing.T, c *Cluster, namespace string) error {
	must(t, c.Apply(ctx, fmt.Appendf(nil, quota, namespace)))
	n := 0
	err := untilRefused(ctx, t, "exceeded quota", func() error {
		n++
		return createRun(ctx, c.RESTConfig(), run(namespace, fmt.Sprintf("filler%d", n), nil, "a"))
	})
	if err != nil {
		t.Log(err)
	}
	err = createRun(ctx, c.RESTConfig(), run(namespace, "x", nil, "a"))
	return rewritten(t, err, `used: count/pipelineruns.tekton.dev=\d+`, "used: count/pipelineruns.tekton.dev=1")
}

func outdated(ctx context.Context, t *testing.T, c *Cluster, namespace string) error {
	old := started(ctx, t, c, namespace)
	old.SetResourceVersion("1")
	_, err := c.dynamic.Resource(PipelineRuns()).Namespace(namespace).Update(ctx, old, metav1.UpdateOptions{})
	return err
}

func wrongToken(ctx context.Context, _ *testing.T, c *Cluster, namespace string) error {
	config := c.RESTConfig()
	config.BearerToken = "wrong"
	return createRun(ctx, config, run(namespace, "x", nil, "a"))
}

func changeStarted(ctx context.Context, t *testing.T, c *Cluster, namespace string) error {
	patch := []byte(`{"spec":{"timeouts":{"pipeline":"2h"}}}`)
	started(ctx, t, c, namespace)
	_, err := c.dynamic.Resource(PipelineRuns()).Namespace(namespace).
		Patch(ctx, "x", "application/merge-patch+json", patch, metav1.PatchOptions{})
	return err
}

// started is a PipelineRun that Tekton works on.
func started(ctx context.Context, t *testing.T, c *Cluster, namespace string) *unstructured.Unstructured {
	t.Helper()
	must(t, createRun(ctx, c.RESTConfig(), run(namespace, "x", map[string]string{HoldAnnotation: "true"}, "a")))
	var now *unstructured.Unstructured
	err := Poll(ctx, 50*time.Millisecond, func() (err error) {
		now, err = c.dynamic.Resource(PipelineRuns()).Namespace(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err == nil && ConditionOf(now, "Succeeded").Reason != "Running" {
			err = fmt.Errorf("condition Succeeded is %+v", ConditionOf(now, "Succeeded"))
		}
		return err
	})
	must(t, err)
	return now
}

func untilRefused(ctx context.Context, t *testing.T, text string, try func() error) error {
	t.Helper()
	var last error
	err := Poll(ctx, 50*time.Millisecond, func() error {
		if last = try(); last == nil || !strings.Contains(last.Error(), text) {
			return fmt.Errorf("not refused with %q yet: %w", text, last)
		}
		return nil
	})
	must(t, err)
	return last
}

// answered is an answer of the API server as an error.
type answered struct{ status metav1.Status }

func (a answered) Error() string         { return a.status.Message }
func (a answered) Status() metav1.Status { return a.status }

// rewritten changes what differs from run to run in an answer's texts.
func rewritten(t *testing.T, err error, pattern, replacement string) error {
	t.Helper()
	status, expression := statusOf(t, err), regexp.MustCompile(pattern)
	status.Message = expression.ReplaceAllString(status.Message, replacement)
	if status.Details != nil {
		for i, cause := range status.Details.Causes {
			status.Details.Causes[i].Message = expression.ReplaceAllString(cause.Message, replacement)
		}
	}
	return answered{status}
}

// statusOf is the Status that the server answered, as JSON brings it back.
func statusOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		t.Fatalf("not an answer of the API server: %v", err)
	}
	data, err := json.Marshal(answer.Status())
	must(t, err)
	var status metav1.Status
	must(t, json.Unmarshal(data, &status))
	return status
}
