// SPDX-License-Identifier: Apache-2.0

// Package records finds what was recorded of one pull request or commit: the GitEvents with the same subject, open and settled.
package records

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
	// pageSize is how many events one read brings: an open one has at most some hundred kilobytes of status.
	pageSize = 100
	// maxRecords bounds what one look reads. A pull request has a handful of events for each push and comment.
	maxRecords = 2000
)

// Lister reads GitEvents live.
type Lister interface {
	List(ctx context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error)
}

// Record is one event. A settled one is a stub, which keeps its spec, its plan and its runs with their results.
type Record struct{ Event *v1alpha1.GitEvent }

// SHA is the commit that the event ran, or would have run; empty for a comment that has no plan yet.
func (r Record) SHA() string {
	if plan := r.Event.Status.Plan; plan != nil {
		return plan.HeadSHA
	}
	return r.Event.Spec.SHA
}

// List returns the events of a subject, or of some separated by commas (GitEventSpec.Subjects), the oldest first; those recorded within the same second in the order of their names. What
// every later decision depends on may not be cut: more than can be read is an Operator fault.
func List(ctx context.Context, events Lister, subject string) ([]Record, error) {
	var all []Record
	o := metav1.ListOptions{LabelSelector: plumbline.SubjectLabel + " in (" + subject + ")", Limit: pageSize}
	for {
		page, err := events.List(ctx, o)
		if err != nil {
			return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("listing the GitEvents of the same pull request or commit: %w", err))
		}
		for i := range page.Items {
			all = append(all, Record{&page.Items[i]})
		}
		if len(all) > maxRecords {
			return nil, fault.Operatorf("TooManyRecords", "more than %d GitEvents are recorded of this pull request or commit: wait until old ones are gone, or lower settled-retention-days", maxRecords)
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b Record) int { return compare(a.Event, b.Event) })
	return all, nil
}

func compare(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.RecordedAt().Compare(b.RecordedAt()), cmp.Compare(a.Name, b.Name))
}
