// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// runsOf returns the runs of the status for a plan. Decisions of an earlier attempt stay.
func runsOf(a *attempt.Attempt, made *plan.Plan) []v1alpha1.Run {
	var runs []v1alpha1.Run
	for i, run := range made.Runs {
		if decidedBefore(a, i) {
			runs = append(runs, a.Event.Status.Runs[i])
			continue
		}
		runs = append(runs, v1alpha1.Run{
			Pipeline:         run.Pipeline,
			Namespace:        run.Namespace,
			Name:             run.Name,
			Note:             run.Note,
			Secret:           run.Secret,
			Refused:          run.Refused,
			Unresolved:       run.Unresolved,
			CancelInProgress: run.Cancel.On,
			WithoutState:     a.Config.PipelinesAsCode.Runs(),

			InfrastructureRetries: run.Retries.Most, LinkParams: run.LinkParams,
		})
		if run.Unmatched() {
			runs[i].Refused, runs[i].Result = nil, &v1alpha1.Result{
				Outcome: v1alpha1.OutcomeSkipped, Reason: run.Refused.Reason, Message: run.Refused.Message,
			}
		}
		if run.Keep != nil {
			runs[i].MaxKeepRuns = &run.Keep.Most
		}
	}
	return runs
}

// noteWaits records which runs wait for something that they refer to, and clears the waits of the
// others.
func noteWaits(a *attempt.Attempt, made *plan.Plan) {
	for i, run := range made.Runs {
		switch step := v1alpha1.StepCreate + run.Name; {
		case run.Wait != nil:
			_ = a.Waits.Update(step, run.Wait) // the plan's wait includes it
		case !run.Unresolved && !decidedBefore(a, i):
			a.Waits.Clear(step)
		}
	}
}

// decidedBefore reports whether an earlier attempt has decided the run at an index.
func decidedBefore(a *attempt.Attempt, i int) bool {
	return i < len(a.Event.Status.Runs) && !a.Event.Status.Runs[i].Unresolved
}

func manifestsOf(made *plan.Plan) []plans.Manifest {
	var manifests []plans.Manifest
	for _, run := range made.Runs {
		if run.Manifest != nil {
			manifests = append(manifests, plans.Manifest{Name: run.Name, JSON: run.Manifest})
		}
	}
	return manifests
}

// refusalOf returns the plan's Refused of a stored run.
func refusalOf(run *v1alpha1.Run) *v1alpha1.Refusal {
	if run.Result == nil || run.Result.Reason != v1alpha1.ReasonUnmatched {
		return run.Refused
	}
	return &v1alpha1.Refusal{Reason: run.Result.Reason, Message: run.Result.Message}
}
