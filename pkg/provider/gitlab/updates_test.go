// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// eventOf decodes GitLab's delivery of the last change of a merge request. It returns the event's
// type, "" if it starts nothing.
func (b bench) eventOf(t *testing.T, iid int64, old, changed string) string {
	t.Helper()
	d := b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid})
	if !bytes.Contains(d.Body, []byte(old)) {
		t.Fatalf("the body has no %s: %s", old, d.Body)
	}
	spec, err := webhook{}.Decode(d.Header, bytes.Replace(d.Body, []byte(old), []byte(changed), 1))
	if fault.Is(err, fault.Ignored) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec.EventType
}

// An update starts what its most important change starts, once: new commits and the end of a draft
// come before labels.
func TestUpdatesOfAMergeRequest(t *testing.T) {
	const request, labels = "Merge Request", delivery.TypeLabels
	set := func(values ...string) *[]string { return &values }
	text := func(value string) *string { return &value }
	x, both := text("x"), set("old", "new")
	type update = forgelab.MergeRequestUpdate
	cases := map[string]struct {
		title   string // before the update; the label "old" is set
		update  update
		pushed  bool // with new commits in the same delivery
		want    string
		without bool // the server sends no draft field, but the title
	}{
		"ready":                      {title: "Draft: x", update: update{Title: x}, want: request},
		"ready on an older server":   {title: "Draft: x", update: update{Title: x}, want: request, without: true},
		"ready, in brackets":         {title: "[draft] x", update: update{Title: x}, want: request, without: true},
		"ready, in parentheses":      {title: "(Draft) x", update: update{Title: x}, want: request, without: true},
		"ready with another title":   {title: "draft: x", update: update{Title: text("y")}, want: request},
		"ready with new commits":     {title: "Draft: x", update: update{Title: x}, pushed: true, want: request},
		"ready with a label":         {title: "Draft: x", update: update{Title: x, Labels: both}, want: request},
		"ready with a label removed": {title: "Draft: x", update: update{Title: x, Labels: set()}, want: request},
		"ready with another description": {
			title: "Draft: x", update: update{Title: x, Description: text("y")}, want: request,
		},
		"a draft":                    {title: "x", update: update{Title: text("Draft: x")}},
		"a draft on an older server": {title: "x", update: update{Title: text("Draft: x")}, without: true},
		"a draft with a label": {
			title: "x", update: update{Title: text("Draft: x"), Labels: both}, want: labels,
		},
		"another title of a draft":            {title: "Draft: x", update: update{Title: text("Draft: y")}},
		"another title of a draft, no change": {title: "Draft: x", update: update{Title: text("[Draft] x")}, without: true},
		"another title":                       {title: "x", update: update{Title: text("a draft: x")}},
		"a title that only has the word":      {title: "a draft: x", update: update{Title: x}, without: true},
		"a label":                             {title: "x", update: update{Labels: both}, want: labels},
		"a label and the title":               {title: "x", update: update{Title: text("y"), Labels: both}, want: labels},
		"a label and the description": {
			title: "x", update: update{Description: text("y"), Labels: set("new")}, want: labels,
		},
		"a label and the target branch": {
			title: "x", update: update{TargetBranch: text("release"), Labels: both}, want: labels,
		},
		"a label with new commits":            {title: "x", update: update{Labels: both}, pushed: true, want: request},
		"a label removed":                     {title: "x", update: update{Labels: set()}},
		"a label removed and the description": {title: "x", update: update{Description: text("y"), Labels: set()}},
		"the description":                     {title: "x", update: update{Description: text("y")}},
		"the target branch":                   {title: "x", update: update{TargetBranch: text("release")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{NoDraftChange: c.without})
			b.SetBranch(testProject, "release", b.head.SHA, "dev")
			b.Commit("topic", map[string]string{"x": "z"})
			iid := b.OpenMergeRequest(forgelab.NewMergeRequest{
				Target: testProject, SourceBranch: "topic", Author: "dev", Title: c.title, Labels: []string{"old"},
			})
			b.UpdateMergeRequest(testProject, iid, "rita", c.update)
			old, changed := `"action":"update"`, `"action":"update"`
			if c.pushed {
				changed += `,"oldrev":"` + shaBefore + `"`
			}
			if got := b.eventOf(t, iid, old, changed); got != c.want {
				t.Errorf("the event's type is %q, want %q", got, c.want)
			}
		})
	}
}

// A merge request that became a draft again before its event was read was still ready: as at GitHub
// its event counts, once.
func TestUpdateOfDraftThatWasReady(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"x": "z"})
	iid := b.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, SourceBranch: "topic", Author: "dev", Draft: true,
	})
	b.ReadyMergeRequest(testProject, iid, "dev")
	event := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid}))
	b.RetitleMergeRequest(testProject, iid, "dev", "Draft: topic")
	if got := b.eventOf(t, iid, "", ""); got != "" {
		t.Errorf("becoming a draft is an event of type %q", got)
	}
	got := b.completes(t, event)
	if !got.PullRequest.Draft || got.EventType != "Merge Request" || got.Action != "update" || got.Before != "" {
		t.Errorf("%+v", got)
	}
}

// The user who made a draft ready does not confirm its commit; the user who pushed it does.
func TestReadyDoesNotConfirmHead(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	b.RetitleMergeRequest(testProject, iid, "stranger", "Draft: x")
	b.ReadyMergeRequest(testProject, iid, "rita")
	event := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid}))
	got, err := b.client.Actor(t.Context(), event, event.Actor)
	if err != nil || event.Actor != "rita" || got != "stranger" {
		t.Errorf("%q made it ready, and %q answers for the head (%v), want rita and stranger", event.Actor, got, err)
	}
}
