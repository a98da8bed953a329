// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/test/faults/page"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// loopback lets tests reach the servers they start.
func loopback() egress.Policy { return egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}} }

const (
	testProject = "acme/team/app"
	testFork    = "stranger/app"
	testSecret  = "correct horse"
)

// fake adapts the forge to the suite, with one project and the token of a bot that is a Developer
// there.
type fake struct {
	*forgelab.GitLab
	t       *testing.T
	project forgelab.Project
	token   forgelab.Token
}

func openFake(t *testing.T, o forgelab.Options) (*fake, providertest.Env) {
	t.Helper()
	g := forgelab.New(o)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	f := &fake{GitLab: g, t: t, project: g.CreateProject(testProject, forgelab.ProjectOptions{Unprotected: true})}
	f.token = g.CreateToken(forgelab.NewToken{Project: testProject})
	g.AddHook(testProject, "http://127.0.0.1:1", testSecret)
	return f, providertest.Env{
		Provider: New(Options{}), BaseURL: g.URL(), Service: f, Secret: []byte(testSecret),
		Project: v1alpha1.Project{
			Owner: "acme/team", Name: "app", ID: f.project.ID, URL: f.project.WebURL, DefaultBranch: "main",
		},
		Credentials: provider.Credentials{
			User: "ci-bot", Token: f.token.Value, From: "key provider.token of secret ci/app", Reach: loopback(),
		},
		FileURL: func(branch, path string) string { return f.project.WebURL + "/-/blob/" + branch + "/" + path },
		// The mark of the run's name takes part of a description.
		MaxTitle: maxField - len(" (run-1)"), Length: utf8.RuneCountInString,
	}
}

func openEnv(t *testing.T) providertest.Env {
	f, w := openFake(t, forgelab.Options{})
	f.GitLab.Commit(testProject, "main", forgelab.Change{Message: "first", Files: map[string]string{"README.md": "hello"}})
	f.GitLab.Commit(testProject, "topic", forgelab.Change{Message: "topic", Files: map[string]string{"x": "y"}})
	iid := f.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, SourceBranch: "topic", Author: "dev", Title: "a change",
	})
	for _, d := range []forgelab.Delivery{
		f.PushDelivery(forgelab.PushEvent{Project: testProject, Ref: "refs/heads/main"}),
		f.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid, Action: "open"}),
		f.NoteDelivery(f.AddNote(testProject, iid, "dev", "/deploy")),
	} {
		w.Deliveries = append(w.Deliveries, providertest.Delivery{Header: d.Header, Body: d.Body})
	}
	w.Recorded, w.Rows = recordings(t), f.rows()
	w.Page = func(t *testing.T, met []providertest.Met) {
		var lines []page.Line
		for _, m := range met {
			lines = append(lines, page.Line(m))
		}
		page.Check(t, "GitLab", lines)
	}
	return w
}

func TestConformance(t *testing.T) { providertest.Run(t, openEnv) }

func (f *fake) Commit(branch string, files map[string]string) string {
	return f.GitLab.Commit(testProject, branch, forgelab.Change{Message: "a change\n\nwith a body", Files: files})
}

func (f *fake) ForcePush(branch, parent string, files map[string]string) string {
	if files == nil {
		f.SetBranch(testProject, branch, parent, "dev")
		return parent
	}
	return f.GitLab.Commit(testProject, branch, forgelab.Change{Message: "forced", Parent: parent, Files: files})
}

func (f *fake) PullRequest(branch, author string) *v1alpha1.GitEventSpec {
	iid := f.OpenMergeRequest(forgelab.NewMergeRequest{Target: testProject, SourceBranch: branch, Author: author})
	return f.decode(f.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid, Action: "open"}))
}

func (f *fake) Comment(on *v1alpha1.GitEventSpec, user, body string) *v1alpha1.GitEventSpec {
	return f.decode(f.NoteDelivery(f.AddNote(testProject, on.PullRequest.Number, user, body)))
}

func (f *fake) Withdraw(on *v1alpha1.GitEventSpec) {
	f.CloseMergeRequest(testProject, on.PullRequest.Number, "dev")
}

func (f *fake) decode(d forgelab.Delivery) *v1alpha1.GitEventSpec {
	f.t.Helper()
	spec, err := webhook{}.Decode(d.Header, d.Body)
	if err != nil {
		f.t.Fatalf("Decode: %v", err)
	}
	return spec
}

func (f *fake) Grant(user, role string) {
	f.AddUser(user)
	level := map[string]forgelab.Level{
		"read": forgelab.Reporter, "write": forgelab.Developer, "admin": forgelab.Maintainer,
	}[role]
	if level != forgelab.NoAccess {
		f.SetMember(testProject, user, level)
	}
}

func (f *fake) Join(team, user string) string {
	group := "acme/team/" + team
	f.CreateGroup(group)
	f.SetMember("acme/team", f.token.User.Username, forgelab.Guest) // who sees the groups
	if user != "" {
		f.SetMember(group, user, forgelab.Guest)
	}
	return group
}

func (f *fake) Fail(op providertest.Operation, how providertest.Failure, count int) {
	route := map[providertest.Operation]string{
		// GitLab has one call for both.
		providertest.CreateCheck: forgelab.RouteStatusCreate, providertest.UpdateCheck: forgelab.RouteStatusCreate,
		providertest.FindChecks: forgelab.RouteStatusList, providertest.ReadDirectory: forgelab.RouteTree,
		providertest.ReadFile: forgelab.RouteFile, providertest.AskPermission: forgelab.RouteMembers,
		providertest.ReadRepository: forgelab.RouteProject, providertest.ReadPull: forgelab.RouteMergeRequest,
		providertest.AskMember: forgelab.RouteMembers, providertest.AskTeam: forgelab.RouteGroupMembers,
		providertest.ListComments: forgelab.RouteNoteList, providertest.WriteComment: forgelab.RouteNoteCreate,
		providertest.EditComment: forgelab.RouteNoteUpdate,
	}[op]
	if route == "" {
		f.t.Fatalf("GitLab has no such operation: %s", op)
	}
	f.Inject(forgelab.Fault{Route: route, Count: count, Do: action(how)})
}

func action(how providertest.Failure) forgelab.Action {
	said := func(code int, words string) forgelab.Action {
		return forge.Answer(code, http.Header{"Content-Type": {"application/json"}}, `{"message":`+words+`}`)
	}
	now := time.Now()
	return map[providertest.Failure]forgelab.Action{
		providertest.Unavailable:    forge.ServerError502HTML(),
		providertest.StoredThen502:  forge.ApplyThenAnswer(http.StatusBadGateway),
		providertest.StoredThenGone: forge.ApplyThenDrop(),
		providertest.Disconnected:   forge.Drop(),
		providertest.Unauthorized:   forgelab.Revoked401(),
		providertest.Forbidden:      forgelab.Forbidden403(),
		providertest.NotFound:       forgelab.NotFound404(),
		providertest.RateLimited:    forgelab.RateLimited(now, now.Add(10*time.Minute)),
		providertest.SlowDown: forge.Answer(http.StatusTooManyRequests, http.Header{"Content-Type": {"text/plain"}},
			"Retry later\n"),
		providertest.UnknownRevision: said(http.StatusNotFound, `"404 Commit Not Found"`),
		providertest.Rejected: said(http.StatusBadRequest,
			`{"description":["is too long (maximum is 255 characters)"]}`),
		providertest.Busy: forgelab.Conflict409(),
		providertest.Garbage: forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}},
			"<html>Log in</html>"),
	}[how]
}

func (f *fake) Calls() int { return len(f.Requests()) }

func (f *fake) Checks(sha string) []providertest.Check {
	var out []providertest.Check
	for _, s := range f.StatusesFor(testProject, sha) {
		out = append(out, asCheck(s))
	}
	return out
}

// asCheck reads a status as users do: the run's name is in brackets at the end of the description.
func asCheck(s forgelab.CommitStatus) providertest.Check {
	c := providertest.Check{
		ID: fmt.Sprintf("%d/%d", s.PipelineID, s.ID), Name: s.Name, Title: s.Description, DetailsURL: s.TargetURL,
		Updates: s.Updates,
	}
	if at := strings.LastIndex(s.Description, " ("); at >= 0 {
		c.Title, c.ExternalID = s.Description[:at], strings.TrimSuffix(s.Description[at+2:], ")")
	}
	switch s.State {
	case "pending":
		c.State = "queued"
	case "running":
		c.State = "in_progress"
	default:
		c.State = "completed"
		c.Conclusion = map[string]string{"failed": "failure", "canceled": "cancelled"}[s.State]
		if c.Conclusion == "" {
			c.Conclusion = s.State
		}
	}
	return c
}

func (f *fake) Comments(on *v1alpha1.GitEventSpec) []providertest.Comment {
	var out []providertest.Comment
	for _, n := range f.Notes(testProject, on.PullRequest.Number) {
		out = append(out, providertest.Comment{Ours: n.Author == f.token.User.Username, Body: n.Body, Edits: n.Edits})
	}
	return out
}

func (f *fake) DeleteComments(on *v1alpha1.GitEventSpec) {
	for _, n := range f.Notes(testProject, on.PullRequest.Number) {
		if n.Author == f.token.User.Username {
			f.DeleteNote(testProject, on.PullRequest.Number, n.ID)
		}
	}
}

func (f *fake) Imitate(on *v1alpha1.GitEventSpec, user, body string) {
	f.AddNote(testProject, on.PullRequest.Number, user, body)
}

// Lock removes the token's user from the project.
func (f *fake) Lock(on *v1alpha1.GitEventSpec) {
	f.SetVisibility(testProject, forgelab.Public)
	f.SetMember(testProject, f.token.User.Username, forgelab.NoAccess)
	f.LockMergeRequest(testProject, on.PullRequest.Number, "dev", true)
}
