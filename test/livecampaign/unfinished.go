// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pkgfault "github.com/plumbline-ci/plumbline/pkg/fault"
)

// settles is the promise for an event with nothing left to do.
const settles = "settled"

// unfinished returns what an event still has to do: I-1, I-5, I-10, and to settle.
func unfinished(event v1alpha1.GitEvent, live map[types.UID]pipelinev1.PipelineRun) (due []Violation) {
	add := func(promise, run, message string) {
		due = append(due, Violation{promise, event.Name, run, message + waiting(event)})
	}
	if event.Settled() {
		return nil
	}
	if event.Status.Disposition == "" {
		add("I-1", "", "it is recorded, and nothing has become of it")
		return due
	}
	goesOn := false
	for _, run := range event.Status.Runs {
		if promise, message := unfinishedRun(event, run, live); promise != "" {
			add(promise, run.Name, message)
		}
		goesOn = goesOn || !over(run)
	}
	if !goesOn {
		add(settles, "", "nothing is left to do, and it does not settle")
	}
	return due
}

// unfinishedRun returns what one run still has to do; "" for nothing.
func unfinishedRun(
	event v1alpha1.GitEvent,
	run v1alpha1.Run,
	live map[types.UID]pipelinev1.PipelineRun,
) (promise, message string) {
	found, there := live[run.UID]
	switch {
	case over(run) && lacksConclusion(event, run):
		return "I-5, I-10", "the end of the PipelineRun is recorded, and its check has no conclusion"
	case over(run):
	case run.UID == "" && waitsForSlot(event, run, live):
	case run.UID == "":
		return "I-1", "the PipelineRun is neither made nor refused"
	case !there || succeeded(found) != corev1.ConditionUnknown:
		return "I-5, I-10", "the PipelineRun has ended or is gone, and its event does not know"
	}
	return "", ""
}

// waitsForSlot reports whether a run waits for a slot that another one of the Repository has.
func waitsForSlot(event v1alpha1.GitEvent, run v1alpha1.Run, live map[types.UID]pipelinev1.PipelineRun) bool {
	waits := slices.ContainsFunc(event.Status.Waits, func(w v1alpha1.Wait) bool {
		return w.Step == v1alpha1.StepCreate+run.Name && w.Reason == pkgfault.ReasonConcurrencyLimit
	})
	for _, other := range live {
		if waits && succeeded(other) == corev1.ConditionUnknown {
			return true
		}
	}
	return false
}

// lacksConclusion reports whether a run that was made or refused has no check with a conclusion.
func lacksConclusion(event v1alpha1.GitEvent, run v1alpha1.Run) bool {
	check := checkOf(event, run.Name)
	return (run.UID != "" || run.Refused != nil) && (check == nil || !check.Concluded)
}
