// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// at is a pull request's event that happened, and was received, so many seconds after midnight.
func at(action string, happened, received int) *GitEventSpec {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stamp := metav1.NewTime(day.Add(time.Duration(happened) * time.Second))
	return &GitEventSpec{
		Action: action, PullRequest: &PullRequest{Number: 1}, HappenedAt: &stamp,
		ReceivedAt: metav1.NewTime(day.Add(time.Duration(received) * time.Second)),
	}
}

func TestPrecedesClose(t *testing.T) {
	closed := at("closed", 100, 110)
	for name, test := range map[string]struct {
		event *GitEventSpec
		other *GitEventSpec
		want  bool
	}{
		"pushed before, and delivered after":      {at("synchronize", 99, 5000), closed, true},
		"pushed in the same second":               {at("synchronize", 100, 111), closed, true},
		"reopened after, and delivered before":    {at("reopened", 101, 90), closed, false},
		"reopened in the same second, and after":  {at("reopen", 100, 111), closed, false},
		"reopened in the same second, and before": {at("reopened", 100, 109), closed, true},
		"written after a comment of that second":  {at("synchronize", 100, 111), at("created", 100, 110), false},
		"said to happen long after it came":       {at("synchronize", 100_000, 90), at("closed", 391, 391), true},
		"of a service that is a minute ahead":     {at("synchronize", 160, 90), at("closed", 170, 100), true},
		"of a version that did not record when": {
			&GitEventSpec{PullRequest: &PullRequest{Number: 1}, ReceivedAt: at("", 0, 99).ReceivedAt}, closed, true,
		},
	} {
		if got := test.event.Precedes(test.other, test.other.Happened()); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	commented := at("closed", 1, 1)
	if !commented.Closes() {
		t.Error("a closed pull request is none")
	}
	commented.Comment = &Comment{ID: 1}
	if commented.Closes() {
		t.Error("a comment closes a pull request")
	}
}

func cancelledBy(t *testing.T, cancellations ...Cancellation) *GitEvent {
	t.Helper()
	e := &GitEvent{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{plumbline.CancelAnnotation + "broken": "{", plumbline.TraceparentAnnotation: "x"},
	}}
	for i, c := range cancellations {
		name, value, err := c.CancelsAs(fmt.Sprint("comment-", i))
		if err != nil {
			t.Fatal(err)
		}
		e.Annotations[name] = value
	}
	return e
}

// If several branches are at one commit, only the runs of one are cancelled. Sometimes only the
// plan knows the branch of an event; until then nothing cancels it.
func TestCancelledOfOneRef(t *testing.T) {
	const main = "refs/heads/main"
	of := func(spec GitEventSpec, plan *Plan) *GitEvent {
		e := cancelledBy(t, Cancellation{Why: "all", Ref: main})
		e.Spec, e.Status.Plan = spec, plan
		return e
	}
	comment, rerun := &Comment{ID: 1}, &Rerun{}
	for name, test := range map[string]struct {
		event *GitEvent
		ref   string
	}{
		"a push":                        {of(GitEventSpec{BaseRef: main}, nil), main},
		"a push to another branch":      {of(GitEventSpec{BaseRef: "refs/heads/other"}, nil), "refs/heads/other"},
		"a tag of the name":             {of(GitEventSpec{BaseRef: "refs/tags/main"}, nil), "refs/tags/main"},
		"a command":                     {of(GitEventSpec{Comment: comment}, &Plan{Ref: main}), main},
		"a command that is not planned": {of(GitEventSpec{Comment: comment}, nil), ""},
		"a re-run": {
			of(GitEventSpec{Rerun: rerun, BaseRef: "refs/heads/other"}, &Plan{Ref: main}), main,
		},
		"a re-run that is not planned": {of(GitEventSpec{Rerun: rerun, BaseRef: main}, nil), ""},
		"a re-run of a pull request":   {of(GitEventSpec{Rerun: rerun, BaseRef: main}, &Plan{}), ""},
		"a pull request with a branch so called": {
			of(GitEventSpec{BaseRef: main, PullRequest: &PullRequest{Number: 1}}, nil), "",
		},
	} {
		if ref, ends := test.event.GitRef(), test.event.Cancelled("build") != nil; ref != test.ref || ends != (ref == main) {
			t.Errorf("%s is of %q and ends: %t, want %q", name, ref, ends, test.ref)
		}
	}
}

func TestCancelled(t *testing.T) {
	second := func(n int) metav1.Time { return metav1.NewTime(time.Unix(int64(n), 0)) }
	all, one := Cancellation{Why: "all", At: second(2)}, Cancellation{Why: "one", Names: []string{"build"}, At: second(1)}
	for name, test := range map[string]struct {
		event    *GitEvent
		pipeline string
		want     string
	}{
		"nothing":                            {cancelledBy(t), "build", ""},
		"all":                                {cancelledBy(t, all), "build", "all"},
		"what is not planned":                {cancelledBy(t, all), "", "all"},
		"one does not end what is planned":   {cancelledBy(t, one), "", ""},
		"one":                                {cancelledBy(t, one), "build", "one"},
		"one whose names are generated":      {cancelledBy(t, one), "build-", "one"},
		"another one":                        {cancelledBy(t, one), "builds", ""},
		"the first that happened is the one": {cancelledBy(t, all, one), "build", "one"},
	} {
		got := ""
		if c := test.event.Cancelled(test.pipeline); c != nil {
			got = c.Why
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A cancellation is not recorded twice, and not more than an object can store.
func TestNeedsCancellation(t *testing.T) {
	all, build := &Cancellation{}, &Cancellation{Names: []string{"build"}}
	var many []Cancellation
	for i := range MaxCancellations {
		many = append(many, Cancellation{Names: []string{fmt.Sprint("p", i)}})
	}
	for name, test := range map[string]struct {
		event *GitEvent
		c     *Cancellation
		want  bool
	}{
		"all, of nothing":        {cancelledBy(t), all, true},
		"all, after one":         {cancelledBy(t, *build), all, true},
		"all, twice":             {cancelledBy(t, *all), all, false},
		"one, after all":         {cancelledBy(t, *all), build, false},
		"one, twice":             {cancelledBy(t, *build), build, false},
		"another one":            {cancelledBy(t, *build), &Cancellation{Names: []string{"build", "lint"}}, true},
		"one, after many others": {cancelledBy(t, many...), build, false},
		"all, after many others": {cancelledBy(t, many...), all, true},
	} {
		if got := test.event.Needs(test.c); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	a, b := cancelledBy(t, *all), cancelledBy(t)
	if !a.Knows(b) || b.Knows(a) || !a.Knows(a) {
		t.Error("which version knows of which cancellation")
	}
}

// An untrusted author may write /cancel. Fifty unknown names must not prevent a maintainer's
// "/cancel build" from cancelling: the reply says that it did.
func TestNeedsSkipsCancellationsOfUnknownNames(t *testing.T) {
	e := cancelledBy(t)
	e.Status.Plan, e.Status.Runs = &Plan{}, []Run{{Pipeline: "build", UID: "1"}}
	for i := range MaxCancellations {
		c := &Cancellation{By: "author", Names: []string{fmt.Sprint("nonsense", i)}}
		if !e.Needs(c) {
			continue
		}
		name, value, err := c.CancelsAs(fmt.Sprint("comment-", i))
		if err != nil {
			t.Fatal(err)
		}
		e.Annotations[name] = value
	}
	if build := (&Cancellation{By: "maintainer", Names: []string{"build"}}); !e.Needs(build) {
		t.Errorf("after %d cancellations of nothing build cannot be cancelled any more", len(e.cancellations()))
	}
}

// Two comments in one second, received in one second as well, are ordered by the service's ids: a
// /test after a /cancel is not cancelled by it.
func TestPrecedesOrdersCommentsOfOneSecondByID(t *testing.T) {
	cancel, before, after := at("created", 100, 110), at("created", 100, 110), at("created", 100, 110)
	before.Comment, cancel.Comment, after.Comment = &Comment{ID: 9}, &Comment{ID: 10}, &Comment{ID: 11}
	if !before.Precedes(cancel, cancel.Happened()) {
		t.Error("what was written before is not ended")
	}
	if after.Precedes(cancel, cancel.Happened()) {
		t.Error("what was written after is ended")
	}
}

// A user who closes and reopens a pull request within one second, as scripts do to start its
// pipelines, finds it running: no other event starts it.
func TestPrecedesOrdersReopeningAfterCloseOfSameSecond(t *testing.T) {
	closed, reopened := at("closed", 100, 110), at("reopened", 100, 110)
	if reopened.Precedes(closed, closed.Happened()) {
		t.Error("the reopening is ended by the close")
	}
}
