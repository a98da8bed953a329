// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// validation returns the comment that lists the errors in the files of .tekton.
func validation() *comment {
	return &comment{
		step: v1alpha1.StepValidation, mark: status.ValidationMark, what: "the comment about the files of .tekton",
		of:       func(event *v1alpha1.GitEvent) *v1alpha1.CommentState { return event.Status.Validation },
		counts:   status.Validated,
		newest:   status.NewestValidated,
		text:     status.Validation,
		onlyEdit: func(event *v1alpha1.GitEvent) bool { return !status.Invalid(event) },
		limited:  func(*v1alpha1.GitEvent) bool { return false },
	}
}

// Validation writes the comment that lists the errors in the event's files of .tekton. If there are
// none, and an earlier event of the pull request had some, the comment says that they are fixed. It
// fails no run and no check.
func (s *Step) Validation(ctx context.Context, a *attempt.Attempt) error {
	if !status.Validated(a.Event) {
		return nil
	}
	if a.Event.Status.Validation == nil {
		if clean, _ := s.Clean.Get(a.Event.Name); clean && !status.Invalid(a.Event) {
			return nil
		}
		reports, err := s.reports(ctx, a)
		if err != nil {
			return err
		}
		if !reports {
			s.Clean.Put(a.Event.Name, true)
			return nil
		}
		a.Event.Status.Validation = &v1alpha1.CommentState{}
	}
	return s.write(ctx, a, validation())
}

// reports reports whether the event has errors to list, or to report fixed. The list of earlier
// events is read once for each event and process.
func (s *Step) reports(ctx context.Context, a *attempt.Attempt) (bool, error) {
	repository, err := a.Git.Repository(ctx)
	if repository == nil || err != nil {
		return false, err
	}
	if repository, err = a.Git.WithGlobal(ctx, repository); err != nil {
		return false, err
	}
	if repository.CommentStrategy(a.Event.Spec.Provider) == pacv1alpha1.CommentsDisabled {
		return false, nil
	}
	if status.Invalid(a.Event) {
		return true, nil
	}
	var before []*v1alpha1.GitEvent
	err = history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if other.Status.Validation != nil && status.CompareCommands(other, a.Event) < 0 {
			before = status.NewestValidated(append(before, history.Trimmed(other)))
		}
		return true
	})
	return len(before) > 0 && status.Invalid(before[0]), err
}
