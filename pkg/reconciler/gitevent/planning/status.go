// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// replyOf returns the status of the reply to a command, or nil if the event needs no reply.
func replyOf(a *attempt.Attempt, made *plan.Plan) *v1alpha1.Reply {
	if made.Command == "" || a.Event.Status.Reply != nil {
		return a.Event.Status.Reply
	}
	return &v1alpha1.Reply{Command: made.Command, Untrusted: made.Untrusted}
}

// announce adds the Kubernetes Events about an approval, and about annotations that are not applied
// as written, once.
func announce(a *attempt.Attempt, next *v1alpha1.Plan, made []plan.Run) {
	for _, run := range made { // only a new run has read them
		for _, problem := range run.Problems() {
			a.Waits.WarningEvent(problem.Reason, run.Pipeline+": "+problem.Says)
		}
	}
	given := next.Approval
	if given == nil || !fresh(a) {
		return
	}
	switch {
	case given.Event == a.Event.Name:
		a.Waits.NormalEvent(reasonApproved,
			fmt.Sprintf("%s has approved commit %s of pull request %s", given.By, next.HeadSHA, a.Event.Spec.Ref()))
	case given.Of(next.HeadSHA) != next.HeadSHA:
		a.Waits.NormalEvent(reasonApprovalRemembered, "pull request "+a.Event.Spec.Ref()+": "+given.Says(next.HeadSHA))
	}
}

// planOf returns the plan for the status. What is stored of earlier attempts stays.
func planOf(a *attempt.Attempt, made *plan.Plan) *v1alpha1.Plan {
	next := &v1alpha1.Plan{}
	if a.Planned() {
		next = a.Event.Status.Plan.DeepCopy()
	}
	next.HeadSHA, next.DefinitionSHA = made.HeadSHA, made.DefinitionSHA
	next.Reason, next.Message = made.Reason, made.Message
	next.Ref = refOf(&a.Event.Spec)
	if spec := &a.Event.Spec; spec.Incoming != nil && spec.Rerun == nil && spec.Project.ID != 0 {
		next.Located = &v1alpha1.Located{Project: spec.Project, InstallationID: spec.InstallationID}
	}
	next.OwnHead = made.Own && ofPull(&a.Event.Spec)
	next.Approval, next.EndsPending, next.Priority = made.Approval, made.EndsPending, made.Priority
	next.Cancels, next.Decisions = made.Cancels, slices.Clone(made.Decisions)
	return next
}

// refOf returns the branch or tag of an event whose record does not have it, "" for every other
// event.
func refOf(spec *v1alpha1.GitEventSpec) string {
	if spec.PullRequest == nil && (spec.Comment != nil || spec.Rerun != nil) {
		return spec.OwnRef()
	}
	return ""
}

// ofPull reports whether a comment or a re-run is about a pull request.
func ofPull(spec *v1alpha1.GitEventSpec) bool {
	return (spec.Comment != nil || spec.Rerun != nil) && spec.PullRequest != nil
}
