// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// cancelAsClosed returns the plan of an event that closed or merged a pull request, or ended a
// merge group: it cancels everything that was started for it before. It reads nothing of .tekton
// and checks no permission, because the Git service decides who may close it.
func (p *planner) cancelAsClosed() *Plan {
	if p.spec.Trigger == v1alpha1.TriggerMergeGroup {
		return p.cancel(reasonMergeGroupEnded, v1alpha1.Cancellation{
			Ref: p.spec.OwnRef(), Why: "the merge queue has merged or removed the merge group",
		})
	}
	why := "the pull request was closed"
	if p.spec.Actor != "" {
		why = p.spec.Actor + " closed the pull request"
	}
	return p.cancel(reasonPullRequestClosed, v1alpha1.Cancellation{By: p.spec.Actor, Why: why})
}

// cancel returns the plan of an event that cancels runs and starts none. It leaves no check.
func (p *planner) cancel(reason string, c v1alpha1.Cancellation) *Plan {
	end := p.end(v1alpha1.DispositionCancels, cmp.Or(p.spec.SHA, p.Event.Spec.SHA), reason, c.Why)
	c.At = metav1.NewTime(p.spec.Happened())
	end.Cancels = &c
	return end
}
