// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations on a PipelineRun that choose how its tasks end. Tekton copies
// them to the TaskRuns and the pods, where the node reads them.
const (
	// ExitCodeAnnotation is the exit code of the first step of every task; the
	// default is "0". Another code fails the task, and its later steps are skipped.
	ExitCodeAnnotation = "test.plumbline.dev/exit-code"
	// DurationAnnotation is how long every task runs, in milliseconds; the default is "0".
	DurationAnnotation = "test.plumbline.dev/duration-ms"
	// HoldAnnotation with the value "true" keeps every task running until
	// Release, or until somebody takes the annotation off the pod.
	HoldAnnotation = "test.plumbline.dev/hold"
	// ByHandAnnotation with the value "true" leaves the scheduling and the status of every pod to the
	// test.
	ByHandAnnotation = "test.plumbline.dev/by-hand"
	// LogAnnotation is what each container writes. In it, <secret NAME/KEY> is a value of a Secret
	// of the namespace, and <base64 NAME/KEY> is its encoding.
	LogAnnotation = "test.plumbline.dev/log"
	// LogAnswerAnnotation is what the kubelet answers to a request for a log: an HTTP code, or
	// "hang", which ends when the annotation is changed. The default is the log.
	LogAnswerAnnotation = "test.plumbline.dev/log-answer"
)

// Condition is one condition of an object's status; the zero value means that
// there is none of that type.
type Condition struct{ Status, Reason, Message string }

// ConditionOf reads a condition from the status of any object.
func ConditionOf(object *unstructured.Unstructured, conditionType string) Condition {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, ok := entry.(map[string]any)
		if !ok || fields["type"] != conditionType {
			continue
		}
		text := func(key string) string {
			value, _ := fields[key].(string)
			return value
		}
		return Condition{Status: text("status"), Reason: text("reason"), Message: text("message")}
	}
	return Condition{}
}

// WaitRun waits until a PipelineRun has ended and returns its Succeeded condition.
func (c *Cluster) WaitRun(ctx context.Context, namespace, name string) (Condition, error) {
	var last Condition
	err := Poll(ctx, 50*time.Millisecond, func() error {
		run, err := c.dynamic.Resource(PipelineRuns()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		last = ConditionOf(run, "Succeeded")
		if last.Status != "True" && last.Status != "False" {
			return fmt.Errorf("condition Succeeded is %q: %s", last.Status, last.Message)
		}
		return nil
	})
	if err != nil {
		return last, fmt.Errorf("waiting for PipelineRun %s/%s: %w", namespace, name, err)
	}
	return last, nil
}

// Release lets a PipelineRun that HoldAnnotation holds run to its end. It removes the annotation
// from the run, its TaskRuns and its pods, and repeats that until none has it: Tekton may be
// copying the annotation. A run that is not Tekton's (spec.managedBy) has neither.
func (c *Cluster) Release(ctx context.Context, namespace, name string) error {
	quiet := 0
	if run, err := c.dynamic.Resource(PipelineRuns()).Namespace(namespace).Get(ctx, name,
		metav1.GetOptions{}); err == nil {
		if by, _, _ := unstructured.NestedString(run.Object, "spec", "managedBy"); by != "" {
			_, err := c.releaseOnce(ctx, namespace, name)
			return err
		}
	}
	return Poll(ctx, 200*time.Millisecond, func() error {
		released, err := c.releaseOnce(ctx, namespace, name)
		if err != nil {
			return fmt.Errorf("releasing PipelineRun %s/%s: %w", namespace, name, err)
		}
		quiet++
		if released != 0 {
			quiet = 0
		}
		if quiet < 6 { // Tekton may create something from what it has read before, on a busy machine a second later
			return errors.New("something was still held")
		}
		return nil
	})
}

func (c *Cluster) releaseOnce(ctx context.Context, namespace, name string) (released int, err error) {
	patch := []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, HoldAnnotation))
	for _, resource := range []schema.GroupVersionResource{
		PipelineRuns(), PipelineRuns().GroupVersion().WithResource("taskruns"), {Version: "v1", Resource: "pods"},
	} {
		client := c.dynamic.Resource(resource).Namespace(namespace)
		list, err := client.List(ctx, selectRun(resource, name))
		if err != nil {
			return released, err
		}
		for _, item := range list.Items {
			if item.GetAnnotations()[HoldAnnotation] == "" {
				continue
			}
			_, err := client.Patch(ctx, item.GetName(), types.MergePatchType, patch,
				metav1.PatchOptions{FieldManager: fieldManager})
			if err != nil && !apierrors.IsNotFound(err) {
				return released, err
			}
			released++
		}
	}
	return released, nil
}

func selectRun(resource schema.GroupVersionResource, name string) metav1.ListOptions {
	if resource == PipelineRuns() {
		return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	}
	return metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=" + name}
}
