// SPDX-License-Identifier: Apache-2.0

package authz

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// OwnCode reports whether an event runs a commit of the repository itself that needed no approval.
// Only such runs get permissions beyond reading, and other repositories. It does not matter whether
// the Git service, a command or a button has started the run.
//
// The record of a comment or a re-run does not have the head repository of its pull request, so the
// plan has it.
func OwnCode(event *v1alpha1.GitEvent) bool {
	spec, plan := &event.Spec, event.Status.Plan
	switch {
	case plan == nil || plan.Approval != nil:
		return false
	case spec.Comment != nil || spec.Rerun != nil:
		return plan.OwnHead || event.GitRef() != ""
	}
	return Own(spec, nil)
}

// Own reports the same about an event that is being planned, whose spec is complete.
func Own(spec *v1alpha1.GitEventSpec, approval *v1alpha1.Approval) bool {
	if spec.PullRequest != nil {
		return approval == nil && SameRepository(spec)
	}
	return approval == nil && spec.OwnRef() != ""
}
