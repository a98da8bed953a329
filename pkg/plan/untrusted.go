// SPDX-License-Identifier: Apache-2.0

package plan

import (
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// This file limits what an approved commit of an untrusted user may do (S23). People approve what
// they have read; what they overlook must cost no more than a run.

// fromDefaultBranch reports whether definitions are read from the default branch. For an approved
// commit they are, unless the Repository says that they are the commit's.
func (p *planner) fromDefaultBranch() bool {
	set := ""
	if settings := p.Repository.Spec.Settings; settings != nil {
		set = settings.PipelineRunProvenance
	}
	return set == defaultBranch || set != ofCommit && p.Approval != nil
}

// serviceAccount returns the ServiceAccount for runs of an approved commit, "" for Tekton's
// default.
func (p *planner) serviceAccount() string {
	if settings := p.Repository.Spec.Settings; settings != nil {
		return settings.UntrustedServiceAccount
	}
	return ""
}

// withheld returns the secrets that runs of an approved commit do not get, each with the name of a
// param that refers to it. A secret that another param gives them is not withheld.
func withheld(repository *pacv1alpha1.Repository) map[template.SecretRef]string {
	if repository.Spec.Params == nil {
		return nil
	}
	names := map[template.SecretRef]string{}
	for _, p := range *repository.Spec.Params {
		if p.SecretRef != nil && !p.Untrusted {
			names[template.SecretRef{Name: p.SecretRef.Name, Key: p.SecretRef.Key}] = p.Name
		}
	}
	for _, p := range *repository.Spec.Params {
		if p.SecretRef != nil && p.Untrusted {
			delete(names, template.SecretRef{Name: p.SecretRef.Name, Key: p.SecretRef.Key})
		}
	}
	return names
}

// ownDefinitionCommit returns the commit with the definitions of a commit that has its own. For a
// remembered approval it is the approved commit: .tekton is the same in both, and other files that
// .tekton refers to are as approved.
func (p *planner) ownDefinitionCommit(head string) string {
	if p.Approval == nil {
		return head
	}
	return p.Approval.Of(head)
}

// approvalNote is shown with the result of each run that an approval has started.
func (p *planner) approvalNote() string {
	if p.Approval == nil {
		return ""
	}
	return p.Approval.Says(p.spec.SHA)
}
