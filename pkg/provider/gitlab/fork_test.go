// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// forked is a bench whose head is a merge request from an untrusted user's fork. With a user, that
// user's token reports.
func forked(t *testing.T, visibility, user string) (bench, int64) {
	t.Helper()
	b := newBench(t, forgelab.Options{})
	b.SetVisibility(testProject, forgelab.Public)
	b.CreateProject(testFork, forgelab.ProjectOptions{ForkOf: testProject, Visibility: visibility})
	b.GitLab.Commit(testFork, "main",
		forgelab.Change{Message: "theirs", Author: "stranger", Files: map[string]string{"x": "z"}})
	iid := b.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, Source: testFork, SourceBranch: "main", Author: "stranger",
	})
	spec := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid, Action: "open"}))
	b.head = git.Head{SHA: spec.SHA, Project: spec.Project, Ref: spec.HeadRef, PullRequest: spec.PullRequest}
	if user != "" {
		client, err := New(Options{}).Connect(t.Context(), b.URL(), spec.Project,
			provider.Credentials{Token: b.CreateToken(forgelab.NewToken{User: user}).Value, Reach: loopback()})
		if err != nil {
			t.Fatal(err)
		}
		b.client = client
	}
	return b, iid
}

func TestPutShowsStatusAtFork(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "bot")
	b.SetMember(testFork, "bot", forgelab.Maintainer)
	b.SetMember(testProject, "bot", forgelab.Developer)
	id := b.put(t, "", check(status.InProgress, ""))
	if again := b.put(t, id, check(status.Completed, status.Success)); again != id || b.states(testFork) != "success" {
		t.Errorf("%s, then %s: %s", id, again, b.states(testFork))
	}
	if got := b.Notes(testProject, iid); len(got) != 0 || b.states(testProject) != "" {
		t.Errorf("told elsewhere as well: %+v, %s", got, b.states(testProject))
	}
}

// A status of a fork's commit must not become one of the target's branch of the same name.
func TestPutOmitsForkBranchAtTarget(t *testing.T) {
	b, _ := forked(t, forgelab.Public, "")
	b.put(t, "", check(status.InProgress, ""))
	for _, w := range b.Writes() {
		if w.Route == forgelab.RouteStatusCreate && w.Project == testProject && w.Ref != "" {
			t.Errorf("sent to the target: %+v", w)
		}
	}
	if b.states(testProject) != "" {
		t.Errorf("the target shows %s", b.states(testProject))
	}
}

// E10, L3, L4.
func TestPutWritesOneNoteForFork(t *testing.T) {
	for name, visibility := range map[string]string{"403 of a public fork": forgelab.Public,
		"404 of a private fork": forgelab.Private} {
		t.Run(name, func(t *testing.T) {
			b, iid := forked(t, visibility, "")
			for i := range 130 { // our note is found behind many others
				b.AddNote(testProject, iid, "stranger", strings.Repeat("x", i+1))
			}
			id := b.put(t, "", check(status.Queued, ""))
			steps := []struct {
				known string
				check status.Check
				want  string
			}{
				{id, check(status.Queued, ""), "Title of queued"},
				{"", check(status.InProgress, ""), "Title of in_progress"}, // its id was lost
				{id, check(status.Completed, status.Success), "Title of completedsuccess"},
				{id, check(status.InProgress, ""), "Title of completedsuccess"}, // late
				{"", check(status.InProgress, ""), "Title of completedsuccess"},
			}
			for i, step := range steps {
				calls := b.Count(forgelab.RouteStatusList)
				if again := b.put(t, step.known, step.check); again != id {
					t.Errorf("step %d: %s, want %s", i, again, id)
				}
				if asked := b.Count(forgelab.RouteStatusList) > calls; asked == (step.known != "") {
					t.Errorf("step %d: whether the fork takes a status was asked: %t", i, asked)
				}
				notes := b.ours(iid)
				if len(notes) != 1 || !strings.Contains(notes[0].Body, step.want) ||
					!strings.Contains(notes[0].Body, "**Plumbline / build**: ") {
					t.Fatalf("step %d: %+v", i, notes)
				}
			}
			if got := b.ours(iid)[0].Body; !strings.Contains(got, "a table") ||
				!strings.Contains(got, "[here](https://console.example/build-1)") {
				t.Errorf("the note: %s", got)
			}
			again := check(status.InProgress, "")
			again.ExternalID, again.Title = "build-2", "Second"
			if second := b.put(t, "", again); second != id {
				t.Errorf("a new run's note is %s, want %s", second, id)
			}
			b.put(t, id, check(status.Completed, status.Failure))
			if notes := b.ours(iid); len(notes) != 1 || !strings.Contains(notes[0].Body, "Second") {
				t.Errorf("the run before took its note back: %+v", notes)
			}
		})
	}
}

// A pending check is closed wherever a fork's commit shows it: a fork that accepts no status may
// still let everybody read its statuses.
func TestPutClosesPendingStatusOfFork(t *testing.T) {
	closing := check(status.Completed, status.Cancelled)
	closing.OnlyOpen = true
	for name, c := range map[string]struct{ visibility, user, former string }{
		"in the fork":                            {forgelab.Public, "bot", ""},
		"in the note about a public fork":        {forgelab.Public, "", ""},
		"in the note about a private fork":       {forgelab.Private, "", ""},
		"in the fork, by the version before":     {forgelab.Public, "bot", "before"},
		"in the note, written by that of before": {forgelab.Public, "", "before"},
	} {
		t.Run(name, func(t *testing.T) {
			b, iid := forked(t, c.visibility, c.user)
			posted, closing := check(status.InProgress, ""), closing
			if closing.FormerExternalID = c.former; c.former != "" {
				posted.ExternalID = c.former
			}
			if c.user != "" {
				b.SetMember(testFork, c.user, forgelab.Maintainer)
				b.SetMember(testProject, c.user, forgelab.Developer)
			}
			put := func(c status.Check) {
				t.Helper()
				if _, err := b.client.Put(t.Context(), b.head, "", c, false); err != nil {
					t.Fatal(err)
				}
			}
			shown := func() string {
				words := b.states(testFork) + b.states(testProject)
				for _, note := range b.Notes(testProject, iid) {
					words += note.Body
				}
				return words
			}
			put(closing)
			if got := shown(); got != "" {
				t.Fatalf("made %s", got)
			}
			put(posted)
			before := shown()
			put(closing)
			after := shown()
			put(closing)
			if before == "" || !strings.Contains(after, "cancel") || strings.Contains(after, "running") || shown() != after {
				t.Errorf("first %q, then %q, then %q", before, after, shown())
			}
		})
	}
}

// ours are the notes by our token's user.
func (b bench) ours(iid int64) []forgelab.Note {
	var out []forgelab.Note
	for _, n := range b.Notes(testProject, iid) {
		if n.Author == b.token.User.Username {
			out = append(out, n)
		}
	}
	return out
}

func TestPutIgnoresForgedMarks(t *testing.T) {
	b, iid := forked(t, forgelab.Private, "")
	forged := marksOf("", check(status.Completed, "")).String() + "\nall is well"
	b.AddNote(testProject, iid, "stranger", forged)
	b.put(t, "", check(status.Queued, ""))
	if got := b.Notes(testProject, iid); len(got) != 2 || got[0].Body != forged {
		t.Errorf("%+v", got)
	}
}

// B8b, E8.
func TestPutWritesNoteOnlyAfterRefusal(t *testing.T) {
	cases := []struct {
		name  string
		fault forgelab.Fault
		class fault.Class
	}{
		{"the fork's statuses cannot be read",
			forgelab.Fault{Route: forgelab.RouteStatusList, Do: forge.ServerError502HTML()}, fault.Transient},
		{"the fork cannot be written to", forgelab.Fault{Route: forgelab.RouteStatusCreate, Do: forgelab.InternalError500()},
			fault.Transient},
		{"GitLab is busy with the commit", forgelab.Fault{Route: forgelab.RouteStatusCreate, Do: forgelab.Conflict409()},
			fault.Transient},
		{"the token is refused", forgelab.Fault{Route: forgelab.RouteStatusCreate, Do: forgelab.Revoked401()},
			fault.Operator},
		{"the merge request cannot be read", forgelab.Fault{Route: forgelab.RouteMergeRequest, Do: forge.Drop()},
			fault.Transient},
		{"the fork is gone once, then there", forgelab.Fault{Route: forgelab.RouteStatusList, Do: forgelab.NotFound404()},
			fault.Transient},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, iid := forked(t, forgelab.Public, "")
			b.Inject(c.fault)
			for range 3 {
				if _, err := b.client.Put(t.Context(), b.head, "", check(status.Queued, ""), false); !fault.Is(err, c.class) {
					t.Errorf("%v, want class %s", err, c.class)
				}
			}
			if got := b.ours(iid); len(got) != 0 {
				t.Errorf("a note was written: %+v", got)
			}
		})
	}
	t.Run("the fork is down while it is asked for the third time", func(t *testing.T) {
		b, iid := forked(t, forgelab.Private, "")
		b.Inject(forgelab.Fault{Route: forgelab.RouteProject, From: 3, Count: 1, Do: forge.ServerError502HTML()})
		if _, err := b.client.Put(t.Context(), b.head, "", check(status.Queued, ""), false); !fault.Is(err,
			fault.Transient) || len(b.ours(iid)) != 0 {
			t.Errorf("%v: %+v", err, b.ours(iid))
		}
		b.put(t, "", check(status.Queued, ""))
	})
	t.Run("a note that was stored and not answered is found", func(t *testing.T) {
		b, iid := forked(t, forgelab.Private, "")
		b.Inject(forgelab.Fault{Route: forgelab.RouteNoteCreate, Count: 1, Do: forge.ApplyThenAnswer(http.StatusBadGateway)})
		if _, err := b.client.Put(t.Context(), b.head, "", check(status.Queued, ""), false); !fault.Is(err,
			fault.Transient) || !fault.Of(err).Unknown {
			t.Errorf("%v, want a Transient fault whose outcome is unknown", err)
		}
		b.put(t, "", check(status.Completed, status.Success))
		if got := b.ours(iid); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// The payload of a sender who knows a webhook's secret does not decide where statuses are set.
func TestPutReadsForkFromGitLab(t *testing.T) {
	b, _ := forked(t, forgelab.Public, "")
	other := b.CreateProject("acme/secret", forgelab.ProjectOptions{ForkOf: testFork})
	b.SetMember("acme/secret", b.token.User.Username, forgelab.Maintainer)
	pr := *b.head.PullRequest
	pr.HeadProjectID = other.ID
	b.head.PullRequest = &pr
	b.put(t, "", check(status.Completed, status.Success))
	if got := b.states("acme/secret"); got != "" {
		t.Errorf("another project shows %s", got)
	}
}

func TestNotesAreNoQuickActions(t *testing.T) {
	c := check(status.Completed, status.Failure)
	c.Name = "Plumbline / <b>@everybody</b> **x**"
	c.Text = "/approve\n  /merge\n> /close\n```\n/label x\n```\nand/or"
	c.Title = `Skipped: event == "@everybody" || "<b>"` // a clause is an author's words
	body := noteBody(marksOf("", c), c)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(strings.TrimLeft(line, " >\t"), "/") {
			t.Errorf("GitLab would carry out %q", line)
		}
	}
	if strings.Contains(body, "@everybody") || strings.Contains(body, "<b>") || !strings.Contains(body, "and/or") {
		t.Errorf("%s", body)
	}
	c.Text = strings.Repeat("世", 2*maxNote)
	if got := len([]rune(noteBody(marksOf("", c), c))); got > maxNote {
		t.Errorf("a note of %d characters", got)
	}
}
