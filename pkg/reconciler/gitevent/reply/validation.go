// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"context"
	"slices"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// problems is a comment that lists problems of the pull request's newest commit, or that says that
// they are fixed.
type problems struct {
	*comment
	// strategy reports whether the Repository's comment_strategy asks for the comment.
	strategy func(string) bool
	// has reports whether an event has such a problem. lists reports whether the comment about
	// events that newest has returned lists one.
	has   func(event *v1alpha1.GitEvent) bool
	lists func(events []*v1alpha1.GitEvent) bool
	// begin makes the state of an event's comment.
	begin func(st *v1alpha1.GitEventStatus)
}

// validation returns the comment that lists the errors in the files of .tekton.
func validation() *problems {
	of := func(event *v1alpha1.GitEvent) *v1alpha1.CommentState { return event.Status.Validation }
	return &problems{
		comment: &comment{
			step: v1alpha1.StepValidation, mark: status.ValidationMark, what: "the comment about the files of .tekton",
			of: of, counts: status.Validated, newest: status.NewestValidated, text: status.Validation,
			onlyEdit: func(event *v1alpha1.GitEvent) bool { return !status.Invalid(event) },
			limited:  func(*v1alpha1.GitEvent) bool { return false },
		},
		strategy: func(strategy string) bool { return strategy != pacv1alpha1.CommentsDisabled },
		has:      status.Invalid,
		lists: func(events []*v1alpha1.GitEvent) bool {
			return slices.ContainsFunc(events, status.Invalid) // it is about one event
		},
		begin: func(st *v1alpha1.GitEventStatus) { st.Validation = &v1alpha1.CommentState{} },
	}
}

// failures returns the comment that lists the failed pipelines.
func failures() *problems {
	of := func(event *v1alpha1.GitEvent) *v1alpha1.CommentState { return event.Status.Failures }
	return &problems{
		comment: &comment{
			step: v1alpha1.StepFailures, mark: status.FailuresMark, what: "the comment about failed pipelines",
			of: of, counts: status.Concluded, newest: status.NewestConcluded, text: status.Failures,
			onlyEdit: func(event *v1alpha1.GitEvent) bool { return !status.Failing(event) },
			limited:  func(*v1alpha1.GitEvent) bool { return false },
		},
		strategy: func(strategy string) bool { return strategy == pacv1alpha1.CommentsOnFailure },
		has:      status.Failing,
		lists:    status.ListsFailures,
		begin:    func(st *v1alpha1.GitEventStatus) { st.Failures = &v1alpha1.CommentState{} },
	}
}

// Validation writes the comment that lists the errors in the event's files of .tekton. If there are
// none, and an earlier event of the pull request had some, the comment says that they are fixed. It
// fails no run and no check.
func (s *Step) Validation(ctx context.Context, a *attempt.Attempt) error {
	return s.list(ctx, a, validation())
}

// Failures writes the comment that lists the failed pipelines of the pull request, if the
// Repository's comment_strategy is "on_failure". If none is failed any more, the comment says so.
// It fails no run and no check.
func (s *Step) Failures(ctx context.Context, a *attempt.Attempt) error {
	return s.list(ctx, a, failures())
}

func (s *Step) list(ctx context.Context, a *attempt.Attempt, p *problems) error {
	if !p.counts(a.Event) {
		return nil
	}
	if p.of(a.Event) == nil {
		key := p.mark + a.Event.Name
		if clean, _ := s.Clean.Get(key); clean && !p.has(a.Event) {
			return nil
		}
		due, err := s.due(ctx, a, p)
		if err != nil {
			return err
		}
		if !due {
			s.Clean.Put(key, true)
			return nil
		}
		p.begin(&a.Event.Status)
	}
	return s.write(ctx, a, p.comment)
}

// due reports whether there is something to write: the event has problems, or those of earlier
// events are fixed. It reads the earlier events once for each event and process.
func (s *Step) due(ctx context.Context, a *attempt.Attempt, p *problems) (bool, error) {
	repository, err := a.Git.Repository(ctx)
	if repository == nil || err != nil {
		return false, err
	}
	if repository, err = a.Git.WithGlobal(ctx, repository); err != nil {
		return false, err
	}
	if !p.strategy(repository.CommentStrategy(a.Event.Spec.Provider)) {
		return false, nil
	}
	if p.has(a.Event) {
		return true, nil
	}
	var before []*v1alpha1.GitEvent
	err = history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if p.of(other) != nil && status.CompareCommands(other, a.Event) < 0 {
			before = p.newest(append(before, history.Trimmed(other)))
		}
		return true
	})
	return p.lists(before), err
}
