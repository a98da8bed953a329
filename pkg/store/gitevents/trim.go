// SPDX-License-Identifier: Apache-2.0

package gitevents

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// Trim returns the part of an event that is cached, because each replica caches every unsettled
// event. Most of an event is read live. The cache has what these need:
//
//   - the gauges, the Repository's conditions, the budgets, the index and the fair queue
//     (pkg/flowcontrol/fairqueue): names, times, waits, the state of each run and report, the host;
//   - cancellations (pkg/reconciler/gitevent/cancel): what cancels it, and what it cancels;
//   - status.recent of the Repository: the summary of the event, and the reason of its plan;
//   - pkg/reconciler/gitevent/supersede: which events of a pull request, branch or tag are newer.
//
// Add a field here to use it in a cached event. The unit tests of the reconcilers use trimmed
// objects, so that a missing field is noticed.
func Trim(event *v1alpha1.GitEvent) *v1alpha1.GitEvent {
	kept := &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion,
			CreationTimestamp: event.CreationTimestamp,
			Annotations:       quota.Kept(event),
		},
		Spec: v1alpha1.GitEventSpec{
			ReceivedAt:     event.Spec.ReceivedAt,
			Trigger:        event.Spec.Trigger,
			Host:           event.Spec.Host,
			InstallationID: event.Spec.InstallationID,
			Repository: v1alpha1.RepositoryReference{
				Namespace: event.Spec.Repository.Namespace,
				Name:      event.Spec.Repository.Name,
			},
		},
		Status: v1alpha1.GitEventStatus{
			Phase: event.Status.Phase, Waits: event.Status.Waits, Outcome: event.Status.Outcome, Ref: event.Status.Ref,
		},
	}
	newest(kept, event)
	cancels(kept, event)
	for _, c := range event.Status.Conditions {
		kept.Status.Conditions = append(kept.Status.Conditions,
			apis.Condition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
	}
	for i := range event.Status.Runs {
		kept.Status.Runs = append(kept.Status.Runs, trimRun(&event.Status.Runs[i]))
	}
	for _, check := range event.Status.Checks {
		kept.Status.Checks = append(kept.Status.Checks, v1alpha1.Check{Key: check.Key, Concluded: check.Concluded})
	}
	return kept
}

// cancels adds which events have cancelled which runs of this one, and of the few events that
// cancel others, what they cancel.
func cancels(kept, event *v1alpha1.GitEvent) {
	ended := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(event.Annotations)) {
		if !strings.HasPrefix(name, plumbline.CancelAnnotation) {
			continue
		}
		if kept.Annotations == nil {
			kept.Annotations = map[string]string{}
		}
		kept.Annotations[name] = trimCancellation(event.Annotations[name], ended)
	}
	if event.Status.Plan == nil || event.Status.Plan.Cancels == nil ||
		event.Spec.PullRequest == nil && !event.Spec.Closes() {
		return
	}
	kept.Status.Plan.Cancels = event.Status.Plan.Cancels
}

// trimCancellation returns what a cancellation ends; code that acts on it reads the event. It
// leaves out pipelines that another cancellation ends already, so that each is cached once. A
// cancellation for a branch or tag may turn out not to be about this event.
func trimCancellation(value string, ended map[string]bool) string {
	c := &v1alpha1.Cancellation{}
	if json.Unmarshal([]byte(value), c) != nil {
		return ""
	}
	left := v1alpha1.Cancellation{Ref: c.Ref}
	for _, name := range c.Names {
		if !ended[name] {
			left.Names = append(left.Names, name)
		}
		ended[name] = ended[name] || c.Ref == ""
	}
	data, err := json.Marshal(left)
	if err != nil || len(c.Names) > 0 && len(left.Names) == 0 {
		return ""
	}
	return string(data)
}

// newest adds what is needed to determine which of several events of one pull request, branch or
// tag is the newest (pkg/reconciler/gitevent/supersede).
func newest(kept, event *v1alpha1.GitEvent) {
	of, to := &event.Spec, &kept.Spec
	to.Repository.UID, to.Repository.URL = of.Repository.UID, of.Repository.URL
	to.Action, to.SHA, to.Before, to.HappenedAt = of.Action, of.SHA, of.Before, of.HappenedAt
	if of.PullRequest != nil {
		to.PullRequest = &v1alpha1.PullRequest{Number: of.PullRequest.Number}
	} else {
		to.BaseRef = of.BaseRef
		if of.Trigger == v1alpha1.TriggerMergeGroup {
			to.HeadRef = of.HeadRef
		}
	}
	if of.Comment != nil {
		to.Comment = &v1alpha1.Comment{ID: of.Comment.ID}
	}
	if of.Incoming != nil {
		to.Incoming = &v1alpha1.Incoming{}
	}
	if of.Rerun != nil {
		to.Rerun = &v1alpha1.Rerun{}
		kept.Labels = map[string]string{plumbline.SubjectLabel: event.Labels[plumbline.SubjectLabel]}
	}
	plan := event.Status.Plan
	if plan == nil {
		return
	}
	kept.Status.Plan = &v1alpha1.Plan{
		HeadSHA:  plan.HeadSHA,
		Ref:      plan.Ref,
		Reason:   plan.Reason,
		At:       plan.At,
		Priority: plan.Priority,
	} // the last is the priority of its runs (pkg/flowcontrol/runqueue)
	if !plan.Decided() {
		kept.Status.Plan.Decisions = []v1alpha1.Decision{{Open: true}}
	}
}

func trimRun(run *v1alpha1.Run) v1alpha1.Run {
	kept := v1alpha1.Run{
		Namespace:        run.Namespace,
		Name:             run.Name,
		UID:              run.UID,
		Unresolved:       run.Unresolved,
		Pipeline:         run.Pipeline,
		CancelInProgress: run.CancelInProgress,
		MaxKeepRuns:      run.MaxKeepRuns,

		InfrastructureRetries: run.InfrastructureRetries,
	}
	for _, earlier := range run.Attempts {
		kept.Attempts = append(kept.Attempts, v1alpha1.FailedAttempt{Name: earlier.Name})
	}
	if run.Refused != nil {
		kept.Refused = &v1alpha1.Refusal{Reason: run.Refused.Reason}
	}
	if run.Result != nil {
		kept.Result = &v1alpha1.Result{Outcome: run.Result.Outcome, CompletedAt: run.Result.CompletedAt}
	}
	return kept
}
