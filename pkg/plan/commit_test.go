// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// remarked is a comment of a member on a commit.
func remarked() plan.Input {
	in := push()
	spec := in.Event.Spec
	spec.EventType, spec.Sender, spec.BaseRef, spec.HeadRef, spec.Comment = match.CommentEvent, "member", "", "",
		&v1alpha1.Comment{ID: 9}
	return in
}

// said is an env with a member's comment on the head of main, of release and of the tag v1. Other
// commits are elsewhere.
func said(comment string) *env {
	w := written(comment)
	w.files = []git.File{
		pipeline("pushed"), edited(pipeline("released"), "[main]", "[release]"),
		edited(pipeline("tagged"), "[main]", "[refs/tags/v1]"), pulled("pull"),
		pulled("talk", "on-comment: ^/test"),
	}
	w.heads = map[string]string{"refs/heads/main": sha, "refs/heads/release": sha, "refs/tags/v1": sha,
		"refs/heads/moved": defaultSHA, "refs/tags/old": defaultSHA}
	return w
}

// A command on a commit runs what a push to its branch or tag runs, whatever the commit's message
// says.
func TestCommitCommandStartsPipelinesOfBranch(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]struct {
		ref, kind string
		created   []string
	}{
		"/test":                          {"refs/heads/main", "test-all-comment", []string{"pushed"}},
		"please\n\n/test branch:main":    {"refs/heads/main", "test-all-comment", []string{"pushed"}},
		"/test branch: release":          {"refs/heads/release", "test-all-comment", []string{"released"}},
		"/test tag:v1":                   {"refs/tags/v1", "test-all-comment", []string{"tagged"}},
		"/test pull pushed":              {"refs/heads/main", "test-comment", []string{"pushed", "pull"}},
		"/test pushed branch:release":    {"refs/heads/release", "test-comment", []string{"pushed"}},
		"/retest":                        {"refs/heads/main", "retest-all-comment", []string{"pushed"}},
		"/retest released branch:main":   {"refs/heads/main", "retest-comment", []string{"released"}},
		"/retest\n\n> /test branch:gone": {"refs/heads/main", "retest-all-comment", []string{"pushed"}},
	} {
		w := said(comment)
		made := w.make(t, remarked())
		if diff := cmp.Diff(want.created, created(made)); diff != "" || made.Spec.EventType != want.kind ||
			made.Spec.BaseRef != want.ref || made.Spec.HeadRef != want.ref || made.HeadSHA != sha {
			t.Fatalf("%q: %s of %s at %s: %s %v", comment, made.Spec.EventType, made.Spec.BaseRef, made.HeadSHA, diff,
				reasons(made))
		}
		run := decoded(t, made.Runs[0])
		if run.Labels["pipelinesascode.tekton.dev/event-type"] != want.kind || w.count("access of member") != 1 {
			t.Errorf("%q: the label is %q, asked %v", comment, run.Labels["pipelinesascode.tekton.dev/event-type"], w.asked)
		}
	}
}

// A commit that is not the head of the branch, or a comment without a command, starts nothing; the
// plan says why.
func TestInvalidCommitCommandStartsNothing(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]struct{ reason, says string }{
		"/test branch:moved": {
			"NotTheHead", "the branch moved is at commit " + defaultSHA + ", and the comment is on " + sha,
		},
		"/retest tag:old":      {"NotTheHead", "the tag old is at commit " + defaultSHA},
		"/cancel branch:moved": {"NotTheHead", "the branch moved is at commit"},
		"/test branch:gone":    {"RefNotFound", "there is no refs/heads/gone"},
		"/test tag:main":       {"RefNotFound", "there is no refs/tags/main"},
		"/test other:main": {
			"MalformedCommand", "other:main is neither a pipeline's name nor branch:NAME nor tag:NAME",
		},
		"/test branch:a..b":        {"MalformedCommand", "a..b is no name of a branch or tag"},
		"/test branch:main tag:v1": {"ContradictoryCommands", "a branch and a tag"},
		"/test\n/cancel":           {"ContradictoryCommands", "two different commands"},
		"/test nothing":            {"UnknownName", "(All: pull, pushed, released, tagged, talk)"},
		"/ok-to-test":              {"NoCommand", "only if it has a command"},
		"/ok-to-test 0123456789":   {"NoCommand", "only if it has a command"},
		"looks good":               {"NoCommand", "only if it has a command"},
		"`/test`":                  {"NoCommand", "only if it has a command"},
		"/test branch:" + strings.Repeat("a", 1100): {"MalformedCommand", "is no name of a branch or tag"},
	} {
		w := said(comment)
		made, err := plan.Make(t.Context(), remarked(), w.sources())
		reason, message := made.Reason, made.Message
		if over := (*plan.IgnoredError)(nil); errors.As(err, &over) {
			reason, message = over.Why.Reason, over.Why.Message
		} else if err != nil || made.Disposition != v1alpha1.DispositionIgnored {
			t.Errorf("%.80q: %s, %v", comment, made.Disposition, err)
		}
		if reason != want.reason || !strings.Contains(message, want.says) || len(made.Runs) != 0 || made.Spec.SHA != sha {
			t.Errorf("%.80q: %s %q at %s, want %s with %q", comment, reason, message, made.Spec.SHA, want.reason, want.says)
		}
		if want.reason == "NoCommand" && len(w.asked) != 1 {
			t.Errorf("%.80q: asked %v", comment, w.asked)
		}
	}
}

// S17: for a user without write access nothing about the commit is read, also not for /cancel.
func TestUntrustedCommitCommandCostsTwoCalls(t *testing.T) {
	t.Parallel()
	for _, comment := range []string{"/test", "/retest pushed branch:moved", "/cancel", "/test\n/cancel"} {
		w := said(comment)
		w.writers = "author"
		made := w.make(t, remarked())
		if diff := cmp.Diff([]string{"comment", "access of member", "ownership of member"}, w.asked); diff != "" ||
			made.Reason != "NotApproved" || made.Disposition != v1alpha1.DispositionIgnored || made.HeadSHA != sha {
			t.Errorf("%q: %+v: %s", comment, made, diff)
		}
		w = said(comment)
		w.accessErr = down()
		if _, err := plan.Make(t.Context(), remarked(), w.sources()); err == nil || w.count("complete") != 0 {
			t.Errorf("%q, of which it is not known who wrote it: %v, asked %v", comment, err, w.asked)
		}
	}
}

// A branch that moves while decisions are open changes nothing: the first attempt has decided.
func TestCommitCommandStaysValidDuringPlanning(t *testing.T) {
	t.Parallel()
	w := said("/test branch:release")
	w.files, w.addressErr = append(w.files, edited(pipeline("later", "task: "+address), "[main]", "[release]")), down()
	in := remarked()
	first := w.make(t, in)
	if diff := cmp.Diff([]string{"released"}, created(first)); diff != "" || first.Wait == nil {
		t.Fatalf("%v: %s %v", first.Wait, diff, reasons(first))
	}
	w.heads["refs/heads/release"], w.addressErr, w.tree = defaultSHA, nil, map[string]string{address: task}
	in = again(in, first)
	in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = first.Spec.BaseRef, first.Spec.HeadRef // as the status keeps it
	second := w.make(t, in)
	if diff := cmp.Diff([]string{"later"}, created(second)); diff != "" || second.HeadSHA != sha ||
		second.Spec.SHA != sha {
		t.Errorf("at %s: %s %v", second.HeadSHA, diff, reasons(second))
	}
}

// ofRef makes a record one of a push to a ref, or of a command on the commit for that ref.
func ofRef(r history.Record, ref string, comment bool) history.Record {
	r.Event.Spec.EventType, r.Event.Spec.BaseRef = "push", ref
	if comment {
		r.Event.Spec.BaseRef, r.Event.Spec.Comment, r.Event.Status.Plan.Ref = "", &v1alpha1.Comment{ID: 1}, ref
	}
	return r
}

// /retest uses the runs of the same branch at this commit, by pushes and by commands.
func TestCommitRetestUsesRunsOfBranch(t *testing.T) {
	t.Parallel()
	const main, release = "refs/heads/main", "refs/heads/release"
	for name, test := range map[string]struct {
		records []history.Record
		want    []string
	}{
		"the push has failed": {
			[]history.Record{ofRef(recorded(sha, true, "a Failed", "b Succeeded"), main, false)}, []string{"a"},
		},
		"a command has succeeded since": {[]history.Record{ofRef(recorded(sha, true, "a Failed", "b Failed"), main,
			false), ofRef(recorded(sha, true, "b Succeeded"), main, true)}, []string{"a"}},
		"what another branch ran does not count": {[]history.Record{
			ofRef(recorded(sha, true, "a Succeeded"), release, false), ofRef(recorded(sha, true, "b Succeeded"), release, true),
		}, []string{"a", "b"}},
	} {
		w := said("/retest")
		w.files, w.records = []git.File{pipeline("a"), pipeline("b")}, test.records
		made := w.make(t, remarked())
		if diff := cmp.Diff(test.want, created(made)); diff != "" || w.count("records") != 1 {
			t.Errorf("%s: %s %v", name, diff, reasons(made))
		}
	}
}

// S26: users with write access cancel the runs of one branch or tag at a commit. No other user can:
// a commit, unlike a pull request, has no author with that right.
func TestCommitCommandCancels(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]v1alpha1.Cancellation{
		"/cancel":               {Ref: "refs/heads/main"},
		"/cancel pushed tag:v1": {Ref: "refs/tags/v1", Names: []string{"pushed"}},
	} {
		want.By, want.Why, want.At = "member", "member requested it in a comment", at
		w := said(comment)
		made := w.make(t, happened(remarked()))
		if diff := cmp.Diff(&want, made.Cancels); diff != "" || made.Disposition != v1alpha1.DispositionCancels ||
			w.count("files") != 0 {
			t.Errorf("%q: %s %s: %s", comment, made.Disposition, made.Reason, diff)
		}
	}
	w := said("/cancel " + many500())
	if made := w.make(t, remarked()); made.Reason != "TooManyNames" {
		t.Errorf("%s %s", made.Disposition, made.Reason)
	}
}

// A check that was started by a command on a commit runs again as one of its branch.
func TestRerunOfCommitCommand(t *testing.T) {
	t.Parallel()
	record := ran(remarked(), "comment-1", "pushed=Failed")
	record.Event.Status.Plan.Ref = "refs/heads/release"
	w := said("")
	w.writers = "presser"
	in := pressed(v1alpha1.Rerun{Check: "x", ExternalID: record.Event.Status.Runs[0].Name})
	made, err := (&past{env: w, byNumber: map[int64][]history.Record{0: {record}}}).make(t, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pushed"}, created(made)); diff != "" || made.Spec.BaseRef != "refs/heads/release" ||
		made.Spec.EventType != "push" || made.Spec.Comment != nil {
		t.Errorf("%s of %s: %s", made.Spec.EventType, made.Spec.BaseRef, diff)
	}
}

// pointed answers for a comment on a commit. The default branch is main.
func (w *env) pointed(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if e.BaseRef == "" {
		e.BaseRef = "refs/heads/main"
	}
	head, found := w.heads[e.BaseRef]
	if !found {
		return nil, fault.Ignoredf("RefNotFound", "there is no %s", e.BaseRef)
	}
	e.SHA, e.HeadRef, e.Comment.Body, e.Commit = head, e.BaseRef, w.noted, &v1alpha1.Commit{Title: "of " + head}
	return e, nil
}
