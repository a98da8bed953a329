// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const laterSHA = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func second(n int) *metav1.Time {
	at := metav1.NewTime(time.Unix(int64(1_800_000_000+n), 0))
	return &at
}

// onRecord is a recorded event of the pull request: its head at a second, and its disposition.
func onRecord(name, sha string, happened int, disposition v1alpha1.Disposition) history.Record {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *forked().Event.Spec}
	e.Spec.SHA, e.Spec.HappenedAt, e.Spec.ReceivedAt = sha, second(happened), *second(happened)
	e.Status = v1alpha1.GitEventStatus{Disposition: disposition, Plan: &v1alpha1.Plan{HeadSHA: sha}}
	return history.Record{Event: e}
}

// approvedBefore is a comment that approved a commit.
func approvedBefore(sha, base string) history.Record {
	r := onRecord("comment-1", sha, 3, v1alpha1.DispositionRuns)
	r.Event.Spec.Comment, r.Event.Spec.SHA = &v1alpha1.Comment{ID: 1}, ""
	r.Event.Status.Plan.Approval = &v1alpha1.Approval{By: "member", Event: "comment-1", BaseRef: base, HeadProjectID: 99}
	return r
}

// saying is a comment on the author's pull request, written in the fifth second.
func saying(sender string) plan.Input {
	in := forked()
	spec := in.Event.Spec
	in.Event.Name, spec.EventType, spec.Action, spec.SHA, spec.Actor, spec.Sender = "comment-2", match.CommentEvent,
		"created", "", "", sender
	spec.Comment, spec.HappenedAt, spec.ReceivedAt = &v1alpha1.Comment{ID: 2}, second(5), *second(6)
	return in
}

// S21, S24: who may approve which commit, by what is recorded.
func TestCommandOnUntrustedPullRequestRunsApprovedCommit(t *testing.T) {
	t.Parallel()
	opened, moved := onRecord("pull-1", sha, 1, v1alpha1.DispositionPending),
		onRecord("pull-2", laterSHA, 7, v1alpha1.DispositionPending)
	label := func(in *plan.Input) {
		in.Event.Spec.EventType, in.Event.Spec.Action, in.Event.Spec.Actor = match.LabelEvent, "labeled", "member"
	}
	event := func(changes ...func(*plan.Input)) plan.Input {
		in := forked()
		in.Event.Spec.Action = "reopened"
		for _, change := range changes {
			change(&in)
		}
		return in
	}
	requiring := func(in plan.Input) plan.Input {
		config := *in.Config
		config.RequireApprovedSHA = true
		in.Config = &config
		return in
	}
	for name, c := range map[string]struct {
		in      plan.Input
		said    string
		head    string
		known   []history.Record
		writers string
		by      string // who approved, "" if it does not run
		why     string // part of the message if it does not
	}{
		"a writer approves": {saying("member"), "/ok-to-test", sha, []history.Record{opened}, "member", "member", ""},
		"naming the commit": {
			saying("member"), "/ok-to-test " + sha[:12], sha, []history.Record{opened}, "member", "member", "",
		},
		"naming another one": {saying("member"), "/ok-to-test " + laterSHA, sha, []history.Record{opened}, "member", "",
			"the head of the pull request is " + sha},
		"by /test": {saying("member"), "/test", sha, []history.Record{opened}, "member", "member", ""},
		"and asks for something else in the same comment": {
			saying("member"), "/ok-to-test\n/cancel", sha, []history.Record{opened}, "member", "", "",
		},
		"the head moved": {
			saying("member"), "/ok-to-test", laterSHA, []history.Record{opened, moved}, "member", "", "was not " + laterSHA,
		},
		"the head moved and nobody knows yet": {
			saying("member"), "/test", laterSHA, []history.Record{opened}, "member", "", "was not " + laterSHA,
		},
		"nothing is on record": {
			saying("member"), "/ok-to-test", sha, nil, "member", "", "/ok-to-test " + sha,
		},
		"the author": {
			saying("author"), "/ok-to-test", sha, []history.Record{opened}, "author", "", "cannot approve it",
		},
		"an untrusted user": {
			saying("eve"), "/ok-to-test", sha, []history.Record{opened}, "", "", "no write access",
		},
		"the commit has to be named": {
			requiring(saying("member")), "/ok-to-test", sha, []history.Record{opened}, "member", "", "require-ok-to-test-sha",
		},
		"the commit has to be named, and /test names none": {
			requiring(saying("member")), "/test", sha, []history.Record{opened}, "member", "", "require-ok-to-test-sha",
		},
		"the commit has to be named, and is": {
			requiring(saying("member")), "/ok-to-test " + sha, sha, []history.Record{opened}, "member", "member", "",
		},
		"it is approved already": {
			saying("other"), "/test", sha, []history.Record{opened, approvedBefore(sha, "main")}, "other", "member", "",
		},
		"another commit was approved": {
			event(), "", "", []history.Record{opened, approvedBefore(laterSHA, "main")}, "member", "", "no write access",
		},
		"it is opened again after the approval": {
			event(), "", "", []history.Record{opened, approvedBefore(sha, "main")}, "member", "member", "",
		},
		"it goes to another branch now": {
			event(), "", "", []history.Record{opened, approvedBefore(sha, "release")}, "member", "", "no write access",
		},
		"a writer labels it after the approval": {
			event(label), "", "", []history.Record{opened, approvedBefore(sha, "main")}, "member", "member", "",
		},
		"an untrusted user labels it after the approval": {
			event(label), "", "", []history.Record{opened, approvedBefore(sha, "main")}, "", "", "no write access",
		},
		"a writer remarks on it": {
			saying("member"), "nice", sha, []history.Record{opened}, "member", "", "no write access",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, writers: c.writers,
				said: c.said, moved: c.head}
			sources := w.sources()
			sources.Records = func(context.Context) ([]history.Record, error) { w.ask("records"); return c.known, nil }
			made, err := plan.Make(t.Context(), c.in, sources)
			if err != nil {
				t.Fatal(err)
			}
			if c.by == "" {
				if len(made.Runs) != 0 || made.Approval != nil || made.EndsPending || !strings.Contains(made.Message, c.why) {
					t.Errorf("%+v, want no run because of %q", made, c.why)
				}
				return
			}
			if made.Disposition != v1alpha1.DispositionRuns || made.HeadSHA != sha || made.Approval == nil ||
				made.Approval.By != c.by || !made.EndsPending {
				t.Fatalf("%+v, %+v, want the run of %s by %s", made, made.Approval, sha, c.by)
			}
			if a := made.Approval; a.BaseRef != "main" || a.HeadProjectID != 99 || a.Event == "" ||
				!strings.Contains(made.Runs[0].Note, c.by+" has approved commit "+sha) {
				t.Errorf("%+v, noted %q", a, made.Runs[0].Note)
			}
			if w.count("records") != 1 {
				t.Errorf("asked %v", w.asked)
			}
		})
	}
}

// S10, S21: users without write access may push to the fork of a writer's pull request. If nothing
// is recorded of it, its current head may be newer than the comment: it runs only if the comment
// names it in full.
func TestCommandOnUnrecordedPullRequestOfWriter(t *testing.T) {
	t.Parallel()
	for said, c := range map[string]struct {
		here bool
		runs int
	}{
		"/test":              {},
		"/deploy":            {},
		"/ok-to-test":        {},
		"/ok-to-test " + sha: {runs: 1},
		"/test ":             {here: true, runs: 1},
		"/deploy ":           {here: true, runs: 1},
	} {
		in := commented()
		if c.here {
			in = commentedHere()
		}
		w := &env{files: []git.File{pipeline("a", "on-comment: ^/deploy", `on-cel-expression: 'event_type != ""'`)},
			writers: "member author", said: said, moved: sha, records: []history.Record{}}
		made := w.make(t, in)
		if len(made.Runs) != c.runs || c.runs == 0 && !strings.Contains(made.Message, "/ok-to-test "+sha) {
			t.Errorf("%q in the repository itself %t: %d runs, %s %q", said, c.here, len(made.Runs), made.Reason, made.Message)
		}
	}
}

// A command that names a commit other than the head starts nothing, also on a pull request that
// needs no approval.
func TestCommandNamingAnotherCommitStartsNothing(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]plan.Input{"a branch of the repository": commentedHere(),
		"a writer's fork": commented()} {
		for said, runs := range map[string]int{"/ok-to-test " + laterSHA: 0, "/ok-to-test " + sha[:12]: 1, "/ok-to-test": 1} {
			w := &env{files: []git.File{pulled("a")}, writers: "member author", said: said, moved: sha}
			made := w.make(t, in)
			if len(made.Runs) != runs || runs == 0 && !strings.Contains(made.Message, "the head of the pull request is "+sha) {
				t.Errorf("%s on %s: %d runs, %s %q", said, name, len(made.Runs), made.Reason, made.Message)
			}
		}
	}
}

// Where deliveries are not signed, the Git service's own heads and times count, and nothing runs
// while they cannot be read.
func TestApprovalUsesVersionsOfService(t *testing.T) {
	t.Parallel()
	version := func(sha string, since int) git.Version { return git.Version{SHA: sha, Since: second(since).Time} }
	for name, c := range map[string]struct {
		known    []history.Record
		versions []git.Version
		runs     bool
	}{
		"the head was there before the comment": {nil, []git.Version{version(sha, 1)}, true},
		"a delivery says that it came later": {
			[]history.Record{onRecord("forged", sha, 7, "")}, []git.Version{version(sha, 1)}, true,
		},
		"a delivery says that there was another one": {
			[]history.Record{onRecord("forged", laterSHA, 4, "")}, []git.Version{version(sha, 1)}, true,
		},
		"it came later, and a delivery says that it was there": {
			[]history.Record{onRecord("forged", sha, 1, "")}, []git.Version{version(sha, 7), version(laterSHA, 1)}, false,
		},
		"it was pushed back after another one": {[]history.Record{onRecord("held", sha, 1, "")},
			[]git.Version{version(sha, 7), version(laterSHA, 3), version(sha, 1)}, false},
		"it came in the second of the comment": {nil, []git.Version{version(sha, 5)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{files: []git.File{edited(pipeline("a"), "[push]", "[pull_request]")}, writers: "member",
				said: "/ok-to-test", moved: sha, records: c.known, versions: c.versions}
			if made := w.make(t, saying("member")); (len(made.Runs) > 0) != c.runs || (made.Approval != nil) != c.runs {
				t.Errorf("%+v, want that it runs: %t", made.Ending, c.runs)
			}
		})
	}
	w := &env{writers: "member", said: "/ok-to-test", moved: sha,
		records: []history.Record{onRecord("pull-1", sha, 1, "")}, versionsErr: down()}
	if made, err := plan.Make(t.Context(), saying("member"), w.sources()); err == nil || made.Disposition != "" {
		t.Errorf("%v, %+v: what is not known is retried", err, made)
	}
	w = &env{said: "/ok-to-test", versions: []git.Version{version(sha, 1)}}
	if w.make(t, saying("eve")); w.count("versions") != 0 {
		t.Errorf("an untrusted user's command asks %v", w.asked)
	}
}
