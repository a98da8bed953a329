// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"slices"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// uncommented returns the results of a pull request's event that no comment shows yet, unless the
// Repository wants no comments. Runs that were cancelled or skipped have no result, and the errors
// in the files of .tekton have a comment of their own.
func uncommented(ctx context.Context, a *attempt.Attempt) (due []annotated, err error) {
	if a.Event.Spec.PullRequest == nil {
		return nil, nil
	}
	if due = results(a); len(due) == 0 {
		return nil, nil
	}
	repository, err := a.Git.Repository(ctx)
	if repository == nil || err != nil {
		return nil, err
	}
	if repository, err = a.Git.WithGlobal(ctx, repository); err != nil {
		return nil, err
	}
	switch repository.CommentStrategy(a.Event.Spec.Provider) {
	case pacv1alpha1.CommentsDisabled:
		return nil, nil
	case pacv1alpha1.CommentsOnFailure: // a success only replaces the failure before it
		for i := range due {
			due[i].onlyEdit = due[i].check.Conclusion == status.Success
		}
	}
	return due, nil
}

// results returns the results of an event that no comment shows yet.
func results(a *attempt.Attempt) (due []annotated) {
	refused := map[string]bool{}
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		refused[run.Key()] = run.Refused != nil
	}
	for _, check := range a.Desired() {
		result := check.Conclusion == status.Success || check.Conclusion == status.Failure
		if result && check.Text != "" && !refused[check.Key] {
			due = append(due, lacking(a, check, nil)...)
		}
	}
	return due
}

// comment shows the result of a check in the one comment of its pipeline. It never shows the result
// of a run that a newer event has replaced, or of a commit that is not the head of the pull request
// any more.
func (s *Step) comment(ctx context.Context, a *attempt.Attempt, client *provider.Client, c annotated) error {
	if replaced, err := s.replaced(ctx, a, c.check.Key); replaced || err != nil {
		return err
	}
	sha := a.Event.Status.Plan.HeadSHA
	tip, err := a.Git.Tip(ctx, &a.Event.Spec)
	if err != nil || tip != "" && tip != sha {
		return err
	}
	return client.PutReply(ctx, a.Event.Spec.PullRequest.Number, provider.Comment{
		Mark: status.ResultMark(c.check), Text: status.Result(c.check, sha), OnlyEdit: c.onlyEdit,
	})
}

// replaced reports whether a newer event runs the pipeline of a check on the same commit, so that
// the commit shows the status of that run.
func (s *Step) replaced(ctx context.Context, a *attempt.Attempt, key string) (found bool, err error) {
	pipeline := ""
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.Key() == key {
			pipeline = run.Pipeline
		}
	}
	err = history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		found = status.CompareCommands(other, a.Event) > 0 && other.Status.Plan != nil &&
			other.Status.Plan.HeadSHA == a.Event.Status.Plan.HeadSHA &&
			slices.ContainsFunc(other.Status.Runs, func(run v1alpha1.Run) bool {
				return run.Pipeline == pipeline && !run.Skipped()
			})
		return !found
	})
	if err != nil { // the comment is not given up because of the API server
		return false, fault.Of(err).AsTransient()
	}
	return found, nil
}

// what begins the message that says why something is not sent.
func (c annotated) what() string {
	if c.lines == nil {
		return "the comment about " + c.check.Name + " is not written: "
	}
	return "annotations on source lines are not sent: "
}
