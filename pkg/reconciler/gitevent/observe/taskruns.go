// SPDX-License-Identifier: Apache-2.0

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

// limit is how long one run's tasks may be read. The other runs of its event, and their reports,
// wait for that.
const limit = 10 * time.Second

// readTaskRuns returns the TaskRuns of a run, and what the cluster says about the Tasks that they
// refer to. If the cluster forbids reading them, the report has no table but a conclusion. Every
// other error is a fault of reading.
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

// factsOf looks up which Tasks that failed TaskRuns refer to exist, so that Tekton's guess about a
// missing Task is repeated only if it is true.
func factsOf(ctx context.Context, tekton tektonv1.TasksGetter, taskRuns []*pipelinev1.TaskRun) (status.Facts, error) {
	facts := status.Facts{TaskExists: map[string]bool{}}
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
