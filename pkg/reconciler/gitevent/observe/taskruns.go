// SPDX-License-Identifier: Apache-2.0

// Package observe reads what a report says of the tasks of a PipelineRun, beside its verdict.
package observe

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// limit is how long one run's tasks are read: the others of its event, and their reports, wait for
// that.
const limit = 10 * time.Second

// Of returns the TaskRuns of a run, and what the cluster says of the Tasks that they refer to. A
// cluster that forbids reading them costs the report its table, not its verdict. Every other error
// is a fault of reading.
func readTaskRuns(
	ctx context.Context,
	tekton tektonv1.TektonV1Interface,
	run *v1alpha1.Run,
) ([]*pipelinev1.TaskRun, status.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	taskRuns, err := pipelineruns.TaskRunsOf(ctx, tekton.TaskRuns(run.Namespace), run.Name)
	if err != nil {
		f := fault.FromKube(fault.VerbRead, fmt.Errorf("listing the TaskRuns of %s/%s: %w", run.Namespace, run.Name, err))
		if f.Class != fault.Operator {
			return nil, status.Facts{}, f
		}
	}
	facts, err := factsOf(ctx, tekton, taskRuns)
	return taskRuns, facts, err
}

// factsOf looks up which of the Tasks that failed TaskRuns refer to exist, so that Tekton's guess
// is repeated only if true.
func factsOf(ctx context.Context, tekton tektonv1.TasksGetter, taskRuns []*pipelinev1.TaskRun) (status.Facts, error) {
	facts := status.Facts{TaskExists: map[string]bool{}}
	for _, taskRun := range taskRuns {
		ref := taskRun.Spec.TaskRef
		if !taskRun.IsFailure() || ref == nil || ref.Name == "" || ref.Resolver != "" {
			continue
		}
		if len(validation.IsDNS1123Subdomain(ref.Name)) != 0 { // a client cannot even ask for some of these names
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
