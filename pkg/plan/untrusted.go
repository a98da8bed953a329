// SPDX-License-Identifier: Apache-2.0

package plan

import (
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// What a commit may do that runs because somebody has approved it (S23): an approval is of what
// people have read, and what they overlook must not cost more than a run.

// fromDefaultBranch reports whether definitions are taken from the default branch. Those of an
// approved commit are, unless the Repository says that they are the commit's.
func (p *planner) fromDefaultBranch() bool {
	set := ""
	if settings := p.Repository.Spec.Settings; settings != nil {
		set = settings.PipelineRunProvenance
	}
	return set == defaultBranch || set != ofCommit && p.Approval != nil
}

// serviceAccount is the one of runs of an approved commit, "" for Tekton's default.
func (p *planner) serviceAccount() string {
	if settings := p.Repository.Spec.Settings; settings != nil {
		return settings.UntrustedServiceAccount
	}
	return ""
}

// withheld are the secrets that runs of an approved commit do not get, with the name of a param
// that refers to each. One that another param gives to them is not withheld.
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

// definitionsOf is the commit whose definitions a commit has that brings its own. One that runs by
// an approval of another has that one's: they are the same in .tekton, and files elsewhere that
// .tekton refers to are as they were approved.
func (p *planner) ownDefinitionCommit(head string) string {
	if p.Approval == nil {
		return head
	}
	return p.Approval.Of(head)
}

// approvalNote is told with the result of each run that somebody's approval has started.
func (p *planner) approvalNote() string {
	if p.Approval == nil {
		return ""
	}
	return p.Approval.Says(p.spec.SHA)
}
