// SPDX-License-Identifier: Apache-2.0

// Package diagnosis says whose fault a failed PipelineRun is, what failed, and what Tekton's words
// mean. It names the component that refused a PipelineRun. It changes no conclusion.
package diagnosis

import (
	"fmt"
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// run is a failed PipelineRun with its TaskRuns.
type run struct {
	pr       *pipelinev1.PipelineRun
	taskRuns []*pipelinev1.TaskRun
	facts    Facts
}

// Diagnosis says whose fault a failure is, and what failed. It is empty for a PipelineRun that did
// not fail.
type Diagnosis struct {
	Verdict v1alpha1.Verdict
	// Cause is what failed, in a few words of plain text: "step `test` of task `unit` exited with
	// code 1", "node lost". It may be empty.
	Cause string
	// Step is the step that decided the verdict, if one did.
	Step string
}

// SaysAll reports whether the title says all that people have to know in one line.
func (d Diagnosis) SaysAll() bool {
	return d.Verdict == v1alpha1.VerdictInfrastructure || d.Verdict == v1alpha1.VerdictAuthor && d.Step != ""
}

func ofAuthor(format string, args ...any) Diagnosis {
	return Diagnosis{Verdict: v1alpha1.VerdictAuthor, Cause: fmt.Sprintf(format, args...)}
}

func ofCluster(format string, args ...any) Diagnosis {
	return Diagnosis{Verdict: v1alpha1.VerdictInfrastructure, Cause: fmt.Sprintf(format, args...)}
}

func unsure(format string, args ...any) Diagnosis {
	return Diagnosis{Verdict: v1alpha1.VerdictUnknown, Cause: fmt.Sprintf(format, args...)}
}

// Diagnose returns the verdict on a failed PipelineRun. It reads structured fields first, and the
// words of Tekton, the kubelet and the API server only where no field says it. When in doubt, the
// verdict is unknown. It never changes a conclusion.
//
// Of several failures the first one counts: what fails after a lost node may be a consequence, and
// a node that is lost after a task has failed by itself changes nothing for the author.
func Diagnose(pr *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun, facts Facts) Diagnosis {
	condition := pr.Status.GetCondition(apis.ConditionSucceeded)
	if OutcomeOf(condition) != v1alpha1.OutcomeFailed {
		return Diagnosis{}
	}
	r := run{pr: pr, taskRuns: taskRuns, facts: facts}
	failing := Failing(taskRuns)
	first := r.ofFirst(failing)
	d, ok := r.ofRun(condition, len(failing) > 0)
	switch {
	case !ok && len(failing) == 0:
		return Diagnosis{Verdict: v1alpha1.VerdictUnknown}
	case !ok, d.Verdict == v1alpha1.VerdictInfrastructure && len(failing) > 0: // a task failed first
		d = first
	}
	if d.Verdict == v1alpha1.VerdictInfrastructure && r.hidesMore() {
		d.Verdict = v1alpha1.VerdictUnknown
	}
	return d
}

// ofFirst diagnoses the TaskRun that failed first. Of those that failed in the same second, the
// author's counts.
func (r *run) ofFirst(failing []*pipelinev1.TaskRun) (first Diagnosis) {
	for i, tr := range failing {
		if i > 0 && !EndedAt(tr).Equal(EndedAt(failing[0])) {
			break
		}
		d := r.ofTaskRun(tr)
		if i == 0 || d.Verdict == v1alpha1.VerdictAuthor && first.Verdict != v1alpha1.VerdictAuthor {
			first = d
		}
	}
	return first
}

// hidesMore reports whether more may have failed than the TaskRuns show, or still runs: the status
// of CustomRuns is not read, and Tekton ends no task of a run for which it cannot create another.
func (r *run) hidesMore() bool {
	return slices.ContainsFunc(r.pr.Status.ChildReferences, func(child pipelinev1.ChildStatusReference) bool {
		return child.Kind != "TaskRun"
	}) || !r.timedOut() && slices.ContainsFunc(r.taskRuns, func(tr *pipelinev1.TaskRun) bool { return !tr.IsDone() })
}

// ofTaskRun diagnoses a failed TaskRun. If one of its attempts failed by itself, the verdict is
// author, even if a later attempt has lost its node.
func (r *run) ofTaskRun(tr *pipelinev1.TaskRun) Diagnosis {
	d := r.ofAttempt(tr, &tr.Status)
	for i := 0; i < len(tr.Status.RetriesStatus) && d.Verdict != v1alpha1.VerdictAuthor; i++ {
		if attempt := &tr.Status.RetriesStatus[i]; attempt.GetCondition(apis.ConditionSucceeded).IsFalse() {
			if earlier := r.ofAttempt(tr, attempt); earlier.Verdict == v1alpha1.VerdictAuthor {
				d = earlier
			}
		}
	}
	return d
}
