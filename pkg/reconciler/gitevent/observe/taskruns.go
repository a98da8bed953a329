// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// limit is how long one run's tasks may be read. The other runs of its event, and their reports,
// wait for that.
const limit = 10 * time.Second

// readTaskRuns returns the TaskRuns of a run, and what the cluster says about the Tasks that they
// refer to. If the cluster forbids reading them, the report has no table but a conclusion. Every
// other error is a fault of reading.
func readTaskRuns(
	ctx context.Context, tekton tektonv1.TektonV1Interface, pods corev1client.PodsGetter, run *v1alpha1.Run,
) ([]*pipelinev1.TaskRun, diagnosis.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	taskRuns, err := pipelineruns.TaskRunsOf(ctx, tekton.TaskRuns(run.Namespace), run.Name)
	if err != nil {
		f := fault.FromKube(fault.VerbRead, fmt.Errorf("listing the TaskRuns of %s/%s: %w", run.Namespace, run.Name, err))
		if f.Class != fault.Operator {
			return nil, diagnosis.Facts{}, f
		}
	}
	facts, err := factsOf(ctx, tekton, taskRuns)
	if err != nil {
		return taskRuns, facts, err
	}
	facts.Pods, err = podsOf(ctx, pods, taskRuns)
	return taskRuns, facts, err
}

// maxPods is how many Pods are read for one result. The others count as unknown.
const maxPods = 10

// podsOf reads the Pods that say why a signal ended a step. Without the right to read Pods, which
// is optional, such failures are unknown.
func podsOf(
	ctx context.Context, pods corev1client.PodsGetter, taskRuns []*pipelinev1.TaskRun,
) (map[string]*corev1.PodStatus, error) {
	found, reads := map[string]*corev1.PodStatus{}, 0
	for _, taskRun := range taskRuns {
		if reads == maxPods || !diagnosis.NeedsPod(taskRun) {
			continue
		}
		reads++
		pod, err := pods.Pods(taskRun.Namespace).Get(ctx, taskRun.Status.PodName, metav1.GetOptions{})
		switch {
		case err == nil && metav1.IsControlledBy(pod, taskRun):
			found[pod.Name] = &pod.Status
		case err == nil || fault.Gone(err):
		default:
			if f := fault.FromKube(fault.VerbRead, err); f.Class != fault.Operator {
				return found, f
			}
			return found, nil
		}
	}
	return found, nil
}

// factsOf looks up which Tasks that failed TaskRuns refer to exist, so that Tekton's guess about a
// missing Task is repeated only if it is true.
func factsOf(
	ctx context.Context, tekton tektonv1.TasksGetter, taskRuns []*pipelinev1.TaskRun,
) (diagnosis.Facts, error) {
	facts := diagnosis.Facts{TaskExists: map[string]bool{}}
	for _, taskRun := range taskRuns {
		ref := taskRun.Spec.TaskRef
		if !taskRun.IsFailure() || ref == nil || ref.Name == "" || ref.Resolver != "" {
			continue
		}
		if len(validation.IsDNS1123Subdomain(ref.Name)) != 0 { // clients cannot even request some of these names
			facts.TaskExists[ref.Name] = false
			continue
		}
		_, err := tekton.Tasks(taskRun.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err == nil || fault.Gone(err) {
			facts.TaskExists[ref.Name] = err == nil
			continue
		}
		if f := fault.FromKube(fault.VerbRead, err); f.Class != fault.Operator {
			return facts, f
		}
	}
	return facts, nil
}
