// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
)

const (
	// GitEventReady aggregates Planned, Created and Reported.
	GitEventReady = apis.ConditionReady
	// GitEventPlanned means that what will be done is written down.
	GitEventPlanned apis.ConditionType = "Planned"
	// GitEventCreated means that every planned PipelineRun exists or was refused.
	GitEventCreated apis.ConditionType = "Created"
	// GitEventReported means that the Git service has accepted the current state of every check.
	GitEventReported apis.ConditionType = "Reported"
	// GitEventAnnotated means that the PipelineRuns carry what the Git service returned. Nothing
	// waits for it.
	GitEventAnnotated apis.ConditionType = "Annotated"
)

// GetConditionSet returns the dependents of Ready. Annotated is not one: I-10 of docs/codes.md.
func (*GitEvent) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(GitEventPlanned, GitEventCreated, GitEventReported)
}

// GetGroupVersionKind tells knative the kind.
func (*GitEvent) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("GitEvent")
}

func (e *GitEvent) manage() apis.ConditionManager {
	return e.GetConditionSet().Manage(&e.Status)
}

// MarkTrue records that a step is done.
func (e *GitEvent) MarkTrue(step apis.ConditionType, reason, message string) {
	if step == GitEventAnnotated {
		e.markAnnotated("True", reason, message)
		return
	}
	e.manage().MarkTrueWithReason(step, reason, "%s", message)
}

// MarkWaiting records that a step waits; it is not a failure of anything.
func (e *GitEvent) MarkWaiting(step apis.ConditionType, reason, message string) {
	e.manage().MarkUnknown(step, reason, "%s", message)
}

// MarkNotAnnotated records that the metadata could not be written to a PipelineRun yet.
func (e *GitEvent) MarkNotAnnotated(reason, message string) {
	e.markAnnotated("False", reason, message)
}

func (e *GitEvent) markAnnotated(status, reason, message string) {
	e.manage().SetCondition(apis.Condition{
		Type: GitEventAnnotated, Status: corev1.ConditionStatus(status), Severity: apis.ConditionSeverityInfo,
		Reason: reason, Message: message,
	})
}

// EndedAt is when a settled event was settled; of one that was made by hand it is when it was
// created.
func (e *GitEvent) EndedAt() time.Time {
	if e.Status.SettledAt == nil {
		return e.CreationTimestamp.Time
	}
	return e.Status.SettledAt.Time
}

// Settled reports whether nothing is left to do.
func (e *GitEvent) Settled() bool { return e.Status.Phase == PhaseSettled }

// RecordedAt is when the API server stored the event. It is one clock for all receivers, so records
// are ordered by it, not by what a receiver says. An event that is not stored yet has the
// receiver's time alone.
func (e *GitEvent) RecordedAt() time.Time {
	if e.CreationTimestamp.IsZero() {
		return e.Spec.ReceivedAt.Time
	}
	return e.CreationTimestamp.Time
}

// AsRecorded is the event's spec with RecordedAt in place of the receiver's time.
func (e *GitEvent) AsRecorded() *GitEventSpec {
	spec := e.Spec
	spec.ReceivedAt = metav1.NewTime(e.RecordedAt())
	return &spec
}

// Happened is when the event happened by the Git service's clock, or when it was recorded where
// that is not known.
func (e *GitEvent) Happened() time.Time { return e.AsRecorded().Happened() }

// MayRunAgain reports whether a redelivery is processed as another event: this one is settled, no
// run of it was created, and what stopped it was not the pushed content. That is Refused (namespace
// or Repository gone, parked) and PendingApproval (access can be granted). Ignored comes from the
// pushed files, which a SHA fixes, so it stays, unless what is at the URL was not confirmed or not
// proven: that can be done; and whoever presses a re-run button again wants it looked at again. A
// commit that was superseded and is pushed again comes as another delivery; and a disposition of a
// newer version is for that version to judge.
func (e *GitEvent) MayRunAgain() bool {
	if !e.Settled() {
		return false
	}
	for _, run := range e.Status.Runs {
		if run.UID != "" {
			return false
		}
	}
	switch e.Status.Disposition {
	case DispositionRefused, DispositionPending:
		return true
	case DispositionIgnored:
		if e.Spec.Rerun != nil {
			return true
		}
		return e.Status.Plan != nil &&
			(e.Status.Plan.Reason == ReasonAnotherRepository || e.Status.Plan.Reason == ReasonNotProven)
	}
	return false
}

// The reasons of a plan that ends an event as ignored although people can let its redelivery run.
const (
	// ReasonAnotherRepository: the URL belonged to another repository of the Git service before.
	ReasonAnotherRepository = "AnotherRepository"
	// ReasonNotProven: nothing shows that the Repository's namespace may have the URL.
	ReasonNotProven = "NotProven"
)

// Decided reports whether the plan is made and nothing of it is open.
func (p *Plan) Decided() bool {
	if p == nil {
		return false
	}
	for _, d := range p.Decisions {
		if d.Open {
			return false
		}
	}
	return true
}

// Ref is what people call what the event is about. For a pull request that is its number: a comment
// names nothing else. Tags keep "tags/", so that they are not taken for branches.
func (s *GitEventSpec) Ref() string {
	if s.PullRequest != nil {
		return fmt.Sprintf("#%d", s.PullRequest.Number)
	}
	if branch, is := strings.CutPrefix(s.BaseRef, "refs/heads/"); is {
		return branch
	}
	return strings.TrimPrefix(s.BaseRef, "refs/")
}
