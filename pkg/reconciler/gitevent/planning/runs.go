// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// runsOf are the runs of the status as a plan has them. What an attempt before it has decided
// stands.
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
		})
		if run.Keep != nil {
			runs[i].MaxKeepRuns = &run.Keep.Most
		}
	}
	return runs
}

// noteWaits records for which runs something that they refer to is waited for, and for which no
// more.
func noteWaits(a *attempt.Attempt, made *plan.Plan) {
	for i, run := range made.Runs {
		switch step := v1alpha1.StepCreate + run.Name; {
		case run.Wait != nil:
			_ = a.Waits.Update(step, run.Wait) // it is part of the plan's wait
		case !run.Unresolved && !decidedBefore(a, i):
			a.Waits.Clear(step)
		}
	}
}

// decidedBefore reports whether the run at an index was decided before.
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
