// SPDX-License-Identifier: Apache-2.0

// Package rerun decides which pipelines of a commit run again, from the recorded events of that
// commit: what a re-run request is about, and what a command without names does not start again.
package rerun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Sources read what is needed. An error is never taken for an answer.
type Sources struct {
	// Records returns the records of a subject (GitEventSpec.Subjects), oldest first, without the
	// event itself.
	Records func(ctx context.Context, subject string) ([]history.Record, error)
	Pulls   Pulls
}

// Pulls reads which pull requests have a commit.
type Pulls interface {
	Pulls(ctx context.Context, sha string) ([]git.Pull, error)
}

// Find returns what a re-run request is about. It searches the records of the pull requests that
// GitHub names for the commit, then those of the commit itself. Only then it reads which other pull
// requests have the commit, because GitHub names none from forks. application is the prefix of all
// check names.
func Find(ctx context.Context, s Sources, spec *v1alpha1.GitEventSpec, application string) (*Target, error) {
	numbers := append(slices.Clone(spec.Rerun.Pulls), 0)
	found, err := s.findIn(ctx, spec, numbers)
	if found != nil || err != nil {
		return found, err
	}
	pulls, err := s.Pulls.Pulls(ctx, spec.SHA)
	if err != nil {
		return nil, fmt.Errorf("asking which pull requests have commit %s: %w", spec.SHA, err)
	}
	var others []int64
	for _, pull := range pulls {
		if pull.Open && !slices.Contains(numbers, pull.Number) {
			others = append(others, pull.Number)
		}
	}
	others = others[:min(len(others), v1alpha1.MaxRerunPulls)]
	found, err = s.findIn(ctx, spec, others)
	if found != nil || err != nil {
		return found, err
	}
	return unrecorded(spec.Rerun.Check, application, append(slices.Clone(spec.Rerun.Pulls), others...)), nil
}

// findIn searches the records of pull requests, where 0 means the commit. For a re-run of all
// checks, a subject with unsuccessful runs is preferred.
func (s Sources) findIn(ctx context.Context, spec *v1alpha1.GitEventSpec, numbers []int64) (*Target, error) {
	var green *Target
	for _, number := range numbers {
		list, err := s.Records(ctx, subjectsOf(spec, number))
		if err != nil {
			return nil, fmt.Errorf("reading what ran on commit %s: %w", spec.SHA, err)
		}
		list = ofCommit(list, spec.SHA)
		found, wanted := findIn(list, spec.Rerun)
		if found == nil {
			continue
		}
		found.pull = number
		if wanted {
			return found, nil
		}
		if green == nil {
			green = found
		}
	}
	return green, nil
}

// subjectsOf returns the subjects of a pull request of the event's repository, or for 0 of the
// event's commit.
func subjectsOf(spec *v1alpha1.GitEventSpec, number int64) string {
	about := spec.DeepCopy()
	about.PullRequest = nil
	if number != 0 {
		about.PullRequest = &v1alpha1.PullRequest{Number: number}
	}
	return about.Subjects()
}

// unrecorded returns the target of a check that is not on record: its name, and where the commit is
// now.
func unrecorded(check, application string, pulls []int64) *Target {
	found := &Target{Unrecorded: true}
	if name, is := strings.CutPrefix(check, application+" / "); is {
		found.Pipelines = []string{name}
	}
	if len(pulls) > 0 {
		found.pull = pulls[0]
	}
	return found
}

// Refresh returns the target again, from the current records of its subject.
func (r *Target) Refresh(asked *v1alpha1.GitEventSpec, list []history.Record) *Target {
	again := r
	list = ofCommit(list, asked.SHA)
	if now, _ := findIn(list, asked.Rerun); now != nil {
		now.pull = r.pull
		again = now
	}
	again.noteRunning(list)
	return again
}
