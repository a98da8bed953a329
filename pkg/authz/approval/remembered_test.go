// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// planned is an event of a commit with the reason of its plan.
func planned(name, sha, reason string, given *v1alpha1.Approval) history.Record {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: reason, Approval: given}
	return history.Record{Event: e}
}

func by(who, event, sha string) *v1alpha1.Approval {
	return &v1alpha1.Approval{By: who, Event: event, SHA: sha, BaseRef: "main", HeadProjectID: 99}
}

// The last of several approvals counts, with its commit, and whether it was forgotten later.
func TestGiven(t *testing.T) {
	t.Parallel()
	unplanned := history.Record{Event: &v1alpha1.GitEvent{}}
	ann := planned("c1", first, "Selected", by("ann", "c1", ""))
	bob := planned("c2", second, "Selected", by("bob", "c2", ""))
	ran := planned("p2", second, "Selected", by("ann", "c1", first))
	again := planned("p3", first, "Selected", by("ann", "c1", ""))
	forgot := planned("p4", "f00", ReasonForgotten, nil)
	for name, c := range map[string]struct {
		recorded           []history.Record
		by, sha, forgotten string
	}{
		"nothing is on record": {nil, "", "", ""},
		"nothing was approved": {
			[]history.Record{unplanned, planned("p1", first, "PendingApproval", nil)}, "", "", "",
		},
		"one approval":                          {[]history.Record{unplanned, ann}, "ann", first, ""},
		"the last of two":                       {[]history.Record{ann, bob}, "bob", second, ""},
		"a commit ran by it":                    {[]history.Record{ann, ran}, "ann", first, ""},
		"it was opened again":                   {[]history.Record{ann, again}, "ann", first, ""},
		"a commit runs by the one before":       {[]history.Record{ann, bob, ran}, "bob", second, ""},
		"the comment is not on record any more": {[]history.Record{ran}, "ann", first, ""},
		"forgotten":                             {[]history.Record{ann, forgot}, "ann", first, "f00"},
		"forgotten, and another ran":            {[]history.Record{ann, forgot, ran}, "ann", first, "f00"},
		"forgotten, and approved again":         {[]history.Record{ann, forgot, bob}, "bob", second, ""},
		"forgotten, and the comment is gone":    {[]history.Record{forgot, ran}, "ann", first, "f00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given, forgotten := Given(c.recorded)
			if given == nil {
				given = &v1alpha1.Approval{}
			}
			if given.By != c.by || given.SHA != c.sha || forgotten != c.forgotten {
				t.Errorf("%+v, forgotten for %q; want %s of %s, %q", given, forgotten, c.by, c.sha, c.forgotten)
			}
		})
	}
	if ann.Event.Status.Plan.Approval.SHA != "" {
		t.Error("the record was changed")
	}
}

// An approval does not stand for another commit that ran because of it. If two users have approved
// the same commit, the last one is named.
func TestStanding(t *testing.T) {
	t.Parallel()
	event := &v1alpha1.GitEventSpec{SHA: first, BaseRef: "main", PullRequest: &v1alpha1.PullRequest{HeadProjectID: 99}}
	other := planned("c3", first, "", by("eve", "c3", ""))
	other.Event.Status.Plan.Approval.BaseRef = "release"
	fork := planned("c4", first, "", by("eve", "c4", ""))
	fork.Event.Status.Plan.Approval.HeadProjectID = 7
	for name, c := range map[string]struct {
		recorded []history.Record
		by       string
	}{
		"the last of two": {[]history.Record{
			planned("c1", first, "", by("ann", "c1", "")), planned("c2", first, "", by("bob", "c2", "")),
		}, "bob"},
		"of another commit":  {[]history.Record{planned("c1", second, "", by("ann", "c1", ""))}, ""},
		"for another branch": {[]history.Record{planned("c1", first, "", by("ann", "c1", "")), other}, "ann"},
		"for another fork":   {[]history.Record{planned("c1", first, "", by("ann", "c1", "")), fork}, "ann"},
		"it was remembered":  {[]history.Record{planned("p2", first, "", by("ann", "c1", second))}, ""},
	} {
		got := ""
		if standing := Standing(c.recorded, event); standing != nil {
			got = standing.By
		}
		if got != c.by {
			t.Errorf("%s: %q, want %q", name, got, c.by)
		}
	}
	ran := []history.Record{
		planned("c1", first, "", by("ann", "c1", "")), planned("p2", second, "", by("ann", "c1", first)),
	}
	if Remembered(ran, first) || !Remembered(ran, second) || Remembered(nil, second) {
		t.Error("only what ran by an approval of another commit is remembered")
	}
}
