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

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

const (
	// GitEventReady aggregates Planned, Created and Reported.
	GitEventReady = apis.ConditionReady
	// GitEventPlanned means that the plan is stored.
	GitEventPlanned apis.ConditionType = "Planned"
	// GitEventCreated means that every planned PipelineRun exists or was refused.
	GitEventCreated apis.ConditionType = "Created"
	// GitEventReported means that the Git service has accepted the current state of every check.
	GitEventReported apis.ConditionType = "Reported"
	// GitEventAnnotated means that the PipelineRuns have the labels and annotations that the Git
	// service returned. Nothing waits for it.
	GitEventAnnotated apis.ConditionType = "Annotated"
)

// GetConditionSet returns the conditions that Ready depends on. Annotated is not one of them: I-10
// of docs/codes.md.
func (*GitEvent) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(GitEventPlanned, GitEventCreated, GitEventReported)
}

// GetGroupVersionKind returns the kind.
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

// MarkWaiting records that a step waits. That is no failure.
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

// SettledTime returns when the event settled, or when it was created if that is not recorded (in an
// event created by hand).
func (e *GitEvent) SettledTime() time.Time {
	if e.Status.SettledAt == nil {
		return e.CreationTimestamp.Time
	}
	return e.Status.SettledAt.Time
}

// Settled reports whether nothing is left to do.
func (e *GitEvent) Settled() bool { return e.Status.Phase == PhaseSettled }

// RecordedAt returns when the API server stored the event. It is one clock for all receivers, so
// events are ordered by it and not by a receiver's time. Before the event is stored, it is the
// receiver's time.
func (e *GitEvent) RecordedAt() time.Time {
	if e.CreationTimestamp.IsZero() {
		return e.Spec.ReceivedAt.Time
	}
	return e.CreationTimestamp.Time
}

// LastDelivered returns when the delivery of an event, which may be its metadata alone, was sent
// last, as far as receivers have noted it.
func LastDelivered(event metav1.Object) time.Time {
	recorded := event.GetCreationTimestamp().Time
	again, err := time.Parse(time.RFC3339, event.GetAnnotations()[plumbline.DeliveredAgainAnnotation])
	if err == nil && again.After(recorded) {
		return again
	}
	return recorded
}

// AsRecorded returns the event's spec with RecordedAt in place of the receiver's time.
func (e *GitEvent) AsRecorded() *GitEventSpec {
	spec := e.Spec
	spec.ReceivedAt = metav1.NewTime(e.RecordedAt())
	return &spec
}

// Happened returns when the event happened by the Git service's clock, or when it was recorded if
// that is not known.
func (e *GitEvent) Happened() time.Time { return e.AsRecorded().Happened() }

// MayRunAgain reports whether a redelivery is processed as a new event. The event must be settled,
// no run of it was created, and the cause can change:
//
//   - Refused: the namespace or Repository was gone, or the event was given up.
//   - PendingApproval: access can be granted.
//   - Ignored, if the URL's repository was not confirmed or not proven, or if the event is a re-run
//     request: then the user wants another attempt.
//
// Any other Ignored event depends on the pushed files only, which do not change. A superseded
// commit that is pushed again is another delivery. Dispositions of a newer version are for that
// version to judge.
func (e *GitEvent) MayRunAgain() bool {
	if !e.Settled() {
		return false
	}
	for _, run := range e.Status.Runs {
		if run.Started() {
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

// The reasons of a plan that ignores an event whose redelivery users can make run.
const (
	// ReasonAnotherRepository means that the URL belonged to another repository of the Git service
	// before.
	ReasonAnotherRepository = "AnotherRepository"
	// ReasonNotProven means that nothing proves that the Repository's namespace may use the URL.
	ReasonNotProven = "NotProven"
)

// Ref returns the event's branch, tag or pull request, for people. A pull request is its number,
// because a comment has nothing else. Tags start with "tags/", so that they differ from branches.
func (s *GitEventSpec) Ref() string {
	if s.PullRequest != nil {
		return fmt.Sprintf("#%d", s.PullRequest.Number)
	}
	ref := s.OwnRef()
	if branch, is := strings.CutPrefix(ref, "refs/heads/"); is {
		return branch
	}
	return strings.TrimPrefix(ref, "refs/")
}
