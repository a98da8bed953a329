// SPDX-License-Identifier: Apache-2.0

package rerun_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// pulls returns the pull requests of the commit, and counts the calls.
type pulls struct {
	all   []git.Pull
	asked int
}

func (p *pulls) Pulls(context.Context, string) ([]git.Pull, error) {
	p.asked++
	return p.all, nil
}

// The records say what a re-run request is about; the Git service is asked only if they do not.
func TestFind(t *testing.T) {
	t.Parallel()
	list := []history.Record{
		recorded("push-1", "main", ran("red", v1alpha1.OutcomeFailed), ran("green", v1alpha1.OutcomeSucceeded)),
	}
	waited := []history.Record{recorded("push-1", "main", ran("red", v1alpha1.OutcomeFailed),
		ran("green", v1alpha1.OutcomeSucceeded),
		ran(".tekton", v1alpha1.OutcomeSkipped))}
	for name, c := range map[string]struct {
		press      v1alpha1.Rerun
		known      []history.Record
		pulls      []git.Pull
		pipelines  []string
		unrecorded bool
		asked      int
		trigger    v1alpha1.Trigger // "" if nothing tells what the check is of
	}{
		"one check": {
			v1alpha1.Rerun{ExternalID: "green-run"}, list, nil, []string{"green"}, false, 0, v1alpha1.TriggerPush,
		},
		"all checks": {
			v1alpha1.Rerun{All: true}, list, nil, []string{"red"}, false, 0, v1alpha1.TriggerPush,
		},
		"all checks, one showed a wait": {
			v1alpha1.Rerun{All: true}, waited, nil, []string{"red"}, false, 0, v1alpha1.TriggerPush,
		},
		"a check that nobody knows": {
			v1alpha1.Rerun{ExternalID: "x", Check: "CI / lint"}, list, nil, []string{"lint"}, true, 1, "",
		},
		"a check of a pull request, by nothing": {v1alpha1.Rerun{ExternalID: "x", Check: "CI / lint"}, nil,
			[]git.Pull{{Number: 7, Open: true}}, []string{"lint"}, true, 1, v1alpha1.TriggerPullRequest},
		"a check of others": {
			v1alpha1.Rerun{ExternalID: "x", Check: "other"}, nil, []git.Pull{{Number: 7}}, nil, true, 1, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.GitEventSpec{SHA: sha, Rerun: &c.press}
			commit := spec.Subjects()
			asked := &pulls{all: c.pulls}
			found, err := rerun.Find(t.Context(),
				rerun.Sources{Pulls: asked, Records: func(_ context.Context, subject string) ([]history.Record, error) {
					if subject == commit {
						return c.known, nil
					}
					return nil, nil
				}}, spec, "CI")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(found.Pipelines, c.pipelines) || found.Unrecorded != c.unrecorded || found.Ran == c.unrecorded ||
				asked.asked != c.asked {
				t.Errorf("%+v, asked %d times", found, asked.asked)
			}
			switch err := found.Complete(spec); {
			case c.trigger == "":
				if !fault.Is(err, fault.Ignored) {
					t.Errorf("%v, want that nothing tells what the check is of", err)
				}
			case err != nil || spec.Trigger != c.trigger ||
				spec.Trigger == v1alpha1.TriggerPush && spec.BaseRef != "refs/heads/main":
				t.Errorf("%+v, %v", spec, err)
			}
		})
	}
}

// An error is not an answer.
func TestFindReturnsErrors(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	_, err := rerun.Find(t.Context(),
		rerun.Sources{Records: func(context.Context, string) ([]history.Record, error) { return nil, down }},
		&v1alpha1.GitEventSpec{SHA: sha, Rerun: &v1alpha1.Rerun{}}, "CI")
	if !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

// A pipeline that is running by now is not started.
func TestRefresh(t *testing.T) {
	t.Parallel()
	spec := &v1alpha1.GitEventSpec{SHA: sha, Rerun: &v1alpha1.Rerun{All: true}}
	first := []history.Record{
		recorded("push-1", "main", ran("a", v1alpha1.OutcomeFailed), ran("b", v1alpha1.OutcomeFailed)),
	}
	found, err := rerun.Find(t.Context(),
		rerun.Sources{Records: func(context.Context, string) ([]history.Record, error) { return first, nil }}, spec, "CI")
	if err != nil || !slices.Equal(found.Pipelines, []string{"a", "b"}) {
		t.Fatalf("%+v, %v", found, err)
	}
	now := found.Refresh(spec, append(first,
		recorded("push-2", "main", v1alpha1.Run{Pipeline: "b", Name: "b-again", UID: "v"})))
	if !slices.Equal(now.Pipelines, []string{"a"}) || now.Running["b"] != "b-again" || now.Running["a"] != "" {
		t.Errorf("%+v", now)
	}
}
