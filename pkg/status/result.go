// SPDX-License-Identifier: Apache-2.0

package status

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// maxMessage bounds the copy of Tekton's message in the GitEvent's status, in bytes.
const maxMessage = 8 << 10

// maxBrief is the maximum size of a result's Brief in bytes. GitLab shows less of it.
const maxBrief = 400

// maxCause is the maximum size of a result's Cause in bytes. It fits into a title.
const maxCause = 160

// ResultOf returns the terminal state of a PipelineRun, or nil while it has none: only its
// Succeeded condition counts, not what spec.status asks for. The text is the report's body, of at
// most maxText bytes (0: no limit): the task table and, for a failed run, the first failing task's
// name, Tekton's words and an explanation. taskRuns may be empty.
func ResultOf(
	pr *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun, links Links, facts diagnosis.Facts, maxText int,
) *v1alpha1.Result {
	condition := pr.Status.GetCondition(apis.ConditionSucceeded)
	outcome := diagnosis.OutcomeOf(condition)
	if outcome == "" {
		return nil
	}
	r := report{pr: pr, taskRuns: taskRuns, links: links, facts: facts, limit: maxText, outcome: outcome}
	diagnosis := diagnosis.Diagnose(pr, taskRuns, facts)
	return &v1alpha1.Result{
		Outcome:     outcome,
		Reason:      condition.Reason,
		Message:     shorten(condition.Message, " … (cut)", maxMessage),
		StartedAt:   pr.Status.StartTime.DeepCopy(),
		CompletedAt: pr.Status.CompletionTime.DeepCopy(),
		Text:        r.text(condition),
		Brief:       r.brief(condition, diagnosis),
		Verdict:     diagnosis.Verdict,
		Cause:       shorten(diagnosis.Cause, "…", maxCause),
	}
}
