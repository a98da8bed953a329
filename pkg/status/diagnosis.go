// SPDX-License-Identifier: Apache-2.0

package status

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Diagnosis says whose fault a failure is, and what failed. It is empty for a PipelineRun that did
// not fail.
type Diagnosis struct {
	Verdict v1alpha1.Verdict
	// Cause is what failed, in a few words of plain text: "step `test` of task `unit` exited with
	// code 1", "node lost". It may be empty.
	Cause string
	// Task is the pipeline task that decided the verdict, TaskRun its TaskRun, and Step the step.
	// All of them may be empty.
	Task, TaskRun, Step string
}

// Title returns the title of a failed check.
func (d Diagnosis) Title() string { return failedTitle(d.Verdict, d.Cause) }

// Diagnose returns the verdict on a failed PipelineRun. It never changes a conclusion.
func Diagnose(pr *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun, facts Facts) Diagnosis {
	condition := pr.Status.GetCondition(apis.ConditionSucceeded)
	if outcomeOf(condition) != v1alpha1.OutcomeFailed {
		return Diagnosis{}
	}
	r := report{pr: pr, taskRuns: taskRuns, facts: facts, outcome: v1alpha1.OutcomeFailed}
	return r.diagnose()
}

func (r *report) diagnose() Diagnosis {
	failing := r.failing()
	if len(failing) == 0 {
		return Diagnosis{Verdict: v1alpha1.VerdictUnknown}
	}
	return diagnoseTaskRun(failing[0])
}

func diagnoseTaskRun(tr *pipelinev1.TaskRun) Diagnosis {
	d := Diagnosis{Verdict: v1alpha1.VerdictUnknown, Task: taskName(tr), TaskRun: tr.Name}
	switch tr.Status.GetCondition(apis.ConditionSucceeded).Reason {
	case pipelinev1.TaskRunReasonPodEvicted.String():
		d.Verdict, d.Cause = v1alpha1.VerdictInfrastructure, "a pod was evicted"
	case pipelinev1.TaskRunReasonStepFailed.String():
		for _, step := range tr.Status.Steps {
			if t := step.Terminated; t != nil && t.ExitCode != 0 {
				d.Verdict, d.Step = v1alpha1.VerdictAuthor, step.Name
				d.Cause = exited(step.Name, d.Task, t.ExitCode)
				break
			}
		}
	}
	return d
}
