// SPDX-License-Identifier: Apache-2.0

// Package history finds the events of one pull request or commit: the GitEvents with the same
// subject, unsettled and settled.
package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// pageSize is how many events one read returns. An unsettled event has at most some hundred
	// kilobytes of status.
	pageSize = 100
	// perEvent and perRun are more memory than List needs for an event, and for each of its runs.
	perEvent, perRun = 2 << 10, 1 << 10
	// maxRecords bounds what List returns: with two runs each, they take all memory that one event
	// may reserve (pkg/flowcontrol/memory). With the default settings, fewer settled events are
	// stored of all Repositories together.
	maxRecords = 16_000
)

// ReasonTooMany is the reason of a fault for a decision that depends on too many events.
const ReasonTooMany = "TooManyRecords"

// Lister reads GitEvents live.
type Lister interface {
	List(ctx context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error)
}

// Record is one event. A settled one is a stub, with its spec, its plan and its runs with their
// results.
type Record struct{ Event *v1alpha1.GitEvent }

// SHA is the commit that the event ran, or would have run; empty for a comment that has no plan
// yet.
func (r Record) SHA() string {
	if plan := r.Event.Status.Plan; plan != nil {
		return plan.HeadSHA
	}
	return r.Event.Spec.SHA
}

// Each calls visit for each event of a subject, in no order, until it returns false. It has one
// page of events in memory, however many there are. So if visit stores an event, it stores the
// Trimmed one.
func Each(ctx context.Context, events Lister, subject string, visit func(*v1alpha1.GitEvent) bool) error {
	return each(ctx, events, metav1.ListOptions{LabelSelector: selector(subject)}, visit)
}

// EachOpen is Each for the events that are not settled.
func EachOpen(ctx context.Context, events Lister, subject string, visit func(*v1alpha1.GitEvent) bool) error {
	o := metav1.ListOptions{LabelSelector: selector(subject), FieldSelector: v1alpha1.OpenEvents}
	return each(ctx, events, o, func(event *v1alpha1.GitEvent) bool { return event.Settled() || visit(event) })
}

// selector is of one subject, or of some separated by commas (GitEventSpec.Subjects).
func selector(subject string) string { return plumbline.SubjectLabel + " in (" + subject + ")" }

func each(ctx context.Context, events Lister, o metav1.ListOptions, visit func(*v1alpha1.GitEvent) bool) error {
	o.Limit = pageSize
	for {
		page, err := events.List(ctx, o)
		if err != nil {
			err = fmt.Errorf("listing the GitEvents of the same pull request or commit: %w", err)
			return fault.FromKube(fault.VerbRead, err)
		}
		for i := range page.Items {
			if !visit(&page.Items[i]) {
				return nil
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// List returns the events on which decisions about a subject depend (Matters), trimmed, the oldest
// first; events recorded within the same second are in the order of their names. If there are more
// than maxRecords, it returns an Ignored fault, so that the event that needs them does not wait.
//
// List calls reserve with how many bytes of memory it needs in all, and returns its error. A nil
// reserve is not called.
func List(ctx context.Context, events Lister, subject string, reserve func(bytes int) error) ([]Record, error) {
	var all []Record
	held := 0
	var full error
	err := Each(ctx, events, subject, func(event *v1alpha1.GitEvent) bool {
		if event.Settled() && !Matters(event) {
			return true
		}
		if len(all) == maxRecords {
			full = fault.Ignoredf(ReasonTooMany, "more than %d events of this pull request or commit are on record, "+
				"and a decision must not leave any of them out: open a new pull request, "+
				"or wait until old events are forgotten (settled-retention-days)", maxRecords)
			return false
		}
		if reserve != nil && len(all) > 0 && len(all)%pageSize == 0 { // the first page takes little
			full = reserve(held + held/len(all)*pageSize)
		}
		held += perEvent + perRun*len(event.Status.Runs)
		all = append(all, Record{withoutReasons(Trimmed(event))})
		return full == nil
	})
	if err = cmp.Or(err, full); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Record) int { return compare(a.Event, b.Event) })
	return all, nil
}

// Matters reports whether decisions about later events of the subject may depend on a settled
// event. They do not depend on a comment that has started and approved nothing. Every user can
// write thousands of them.
func Matters(event *v1alpha1.GitEvent) bool {
	st := &event.Status
	if event.Spec.Comment == nil || len(st.Runs) > 0 || st.Plan != nil && st.Plan.Approval != nil {
		return true
	}
	switch st.Disposition {
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionCancels, v1alpha1.DispositionRefused,
		v1alpha1.DispositionSuperseded:
		return false
	}
	return true
}

// Trimmed returns a copy of an event without the texts and objects that steps of other events do
// not read.
func Trimmed(event *v1alpha1.GitEvent) *v1alpha1.GitEvent {
	kept := *event
	kept.Payload, kept.ManagedFields, kept.Spec.Headers = nil, nil, nil
	kept.Status.Conditions, kept.Status.Checks = nil, nil
	if event.Status.Plan != nil {
		plan := *event.Status.Plan
		plan.Manifests, plan.Blobs = nil, nil
		kept.Status.Plan = &plan
	}
	kept.Status.Runs = slices.Clone(event.Status.Runs)
	for i := range kept.Status.Runs {
		if result := kept.Status.Runs[i].Result; result != nil {
			short := *result
			short.Text, short.Brief = "", ""
			kept.Status.Runs[i].Result = &short
		}
	}
	return &kept
}

// withoutReasons removes the texts for users from the decisions of a trimmed event.
func withoutReasons(trimmed *v1alpha1.GitEvent) *v1alpha1.GitEvent {
	if plan := trimmed.Status.Plan; plan != nil {
		plan.Decisions = slices.Clone(plan.Decisions)
		for i := range plan.Decisions {
			plan.Decisions[i].Reason, plan.Decisions[i].Selected = "", ""
		}
	}
	return trimmed
}

func compare(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.RecordedAt().Compare(b.RecordedAt()), cmp.Compare(a.Name, b.Name))
}
