// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/test/faults/page"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	testRepo   = "acme/app"
	testApp    = 7
	testSecret = "correct horse"
)

// appKey is one key for all tests, because generating one takes a while.
var appKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})

// fake adapts the forge to the suite.
type fake struct {
	*forge.GitHub
	t         *testing.T
	hook      webhook
	installed int64
}

func openFake(t *testing.T, o forge.Options) (*fake, providertest.Env) {
	t.Helper()
	o.RefuseEarlyConclusion = true
	g := forge.New(o)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.CreateApp(testApp, "plumbline", appKey(), testSecret)
	repo := g.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
	g.CreateRepo("acme", "other", forge.RepoOptions{Private: true})
	installation := g.Install(testApp, "acme")
	f := &fake{GitHub: g, t: t, installed: installation}
	w := envOf(g, repo, installation)
	w.Service = f
	return f, w
}

func envOf(g *forge.GitHub, repo forge.Repo, installation int64) providertest.Env {
	return providertest.Env{
		Provider: New(Options{}), BaseURL: g.URL(), Secret: []byte(testSecret), Mints: true, SignsBody: true,
		MaxTitle: maxTitle, MaxText: maxBody, Length: func(s string) int { return len(s) },
		FileURL: func(branch, path string) string { return repo.HTMLURL + "/blob/" + branch + "/" + path },
		Project: v1alpha1.Project{
			Owner: "acme", Name: "app", ID: repo.ID, URL: repo.HTMLURL, DefaultBranch: "main",
		},
		Credentials: provider.Credentials{
			AppID: testApp, PrivateKey: []byte(appKey()), InstallationID: installation, From: "secret plumbline/app",
		},
	}
}

// deliveries fills the repository and returns a delivery of each kind that starts something.
func (f *fake) deliveries() (all []providertest.Delivery) {
	f.GitHub.Commit(testRepo, "main", forge.Change{Message: "first", Files: map[string]string{"README.md": "hello"}})
	f.GitHub.Commit(testRepo, "topic", forge.Change{Message: "topic", Files: map[string]string{"x": "y"}})
	number := f.OpenPullRequest(forge.NewPull{Base: testRepo, HeadBranch: "topic", Author: "dev", Title: "a change"})
	comment := f.GitHub.Comment(testRepo, number, "dev", "/deploy")
	for _, d := range []forge.Delivery{
		f.PushDelivery(forge.PushEvent{Repo: testRepo, Ref: "refs/heads/main"}),
		f.PullRequestDelivery(forge.PullEvent{Repo: testRepo, Number: number, Action: "opened"}),
		f.CommentDelivery(forge.CommentEvent{Repo: testRepo, ID: comment}),
	} {
		all = append(all, providertest.Delivery{Header: d.Header, Body: d.Body})
	}
	return all
}

func openEnv(t *testing.T) providertest.Env {
	f, w := openFake(t, forge.Options{})
	w.Deliveries = f.deliveries()
	w.Recorded, w.Rows = recordings(t), f.rows()
	w.Page = func(t *testing.T, met []providertest.Met) {
		var lines []page.Line
		for _, m := range met {
			lines = append(lines, page.Line(m))
		}
		page.Check(t, "GitHub", lines)
	}
	return w
}

func TestConformance(t *testing.T) { providertest.Run(t, openEnv) }

func (f *fake) Commit(branch string, files map[string]string) string {
	return f.GitHub.Commit(testRepo, branch, forge.Change{Message: "a change\n\nwith a body", Files: files})
}

func (f *fake) ForcePush(branch, parent string, files map[string]string) string {
	if files == nil {
		f.SetBranch(testRepo, branch, parent, "octocat")
		return parent
	}
	return f.GitHub.Commit(testRepo, branch, forge.Change{Message: "instead", Files: files, Parent: parent})
}

func (f *fake) PullRequest(branch, author string) *v1alpha1.GitEventSpec {
	number := f.OpenPullRequest(forge.NewPull{Base: testRepo, HeadBranch: branch, Author: author})
	return f.decode(f.PullRequestDelivery(forge.PullEvent{Repo: testRepo, Number: number, Action: "opened"}))
}

func (f *fake) Comment(on *v1alpha1.GitEventSpec, user, body string) *v1alpha1.GitEventSpec {
	id := f.GitHub.Comment(testRepo, int(on.PullRequest.Number), user, body)
	return f.decode(f.CommentDelivery(forge.CommentEvent{Repo: testRepo, ID: id}))
}

func (f *fake) Withdraw(on *v1alpha1.GitEventSpec) { f.ClosePull(testRepo, int(on.PullRequest.Number)) }

func (f *fake) decode(d forge.Delivery) *v1alpha1.GitEventSpec {
	f.t.Helper()
	spec, err := f.hook.Decode(d.Header, d.Body)
	if err != nil {
		f.t.Fatalf("Decode: %v", err)
	}
	return spec
}

func (f *fake) Grant(user, role string) {
	f.AddUser(user)
	if role != "none" {
		f.SetCollaborator(testRepo, user, role)
	}
}

func (f *fake) Join(team, user string) string {
	f.SetTeamMember("acme", team, user, "active")
	return team
}

func (f *fake) Fail(op providertest.Operation, how providertest.Failure, count int) {
	route := map[providertest.Operation]string{
		providertest.CreateCheck: forge.RouteCheckCreate, providertest.UpdateCheck: forge.RouteCheckUpdate,
		providertest.FindChecks: forge.RouteCheckList, providertest.ReadDirectory: forge.RouteTree,
		providertest.ReadFile: forge.RouteContents, providertest.AskPermission: forge.RoutePermission,
		providertest.ReadRepository: forge.RouteRepo, providertest.MintToken: forge.RouteToken,
		providertest.ReadPull: forge.RoutePull, providertest.AskMember: forge.RouteCollaborator,
		providertest.AskTeam:      forge.RouteTeamMembership,
		providertest.ListComments: forge.RouteCommentList, providertest.WriteComment: forge.RouteCommentCreate,
		providertest.EditComment: forge.RouteCommentUpdate,
	}[op]
	f.Inject(forge.Fault{Route: route, Count: count, Do: action(how)})
}

func action(how providertest.Failure) forge.Action {
	json := http.Header{"Content-Type": {"application/json"}}
	return map[providertest.Failure]forge.Action{
		providertest.Unavailable:    forge.ServerError502HTML(),
		providertest.StoredThen502:  forge.ApplyThenAnswer(http.StatusBadGateway),
		providertest.StoredThenGone: forge.ApplyThenDrop(),
		providertest.Disconnected:   forge.Drop(),
		providertest.Unauthorized:   forge.Unauthorized401(),
		providertest.Forbidden:      forge.Forbidden403(),
		providertest.NotFound:       forge.NotFound404(),
		providertest.RateLimited:    forge.PrimaryRateLimit(time.Now().Add(10 * time.Minute)),
		providertest.SlowDown:       forge.SecondaryRateLimit(0),
		providertest.UnknownRevision: forge.Answer(http.StatusUnprocessableEntity, json,
			`{"message":"No commit found for SHA: x"}`),
		providertest.Rejected: forge.Answer(http.StatusUnprocessableEntity, json, `{"message":"Validation Failed"}`),
		providertest.Busy:     forge.Answer(http.StatusConflict, json, `{"message":"Git Repository is empty."}`),
		providertest.Garbage: forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html"}},
			"<html>Log in</html>"),
	}[how]
}

func (f *fake) Calls() int { return len(f.Requests()) }

func (f *fake) Checks(sha string) []providertest.Check {
	var out []providertest.Check
	for _, k := range f.ChecksFor(testRepo, sha) {
		out = append(out, providertest.Check{
			ID: strconv.FormatInt(k.ID, 10), Name: k.Name, ExternalID: k.ExternalID, State: k.Status, Conclusion: k.Conclusion,
			Title: k.Title, Summary: k.Summary, Text: k.Text, DetailsURL: k.DetailsURL, Updates: k.Updates,
		})
	}
	return out
}

func (f *fake) Comments(on *v1alpha1.GitEventSpec) []providertest.Comment {
	var out []providertest.Comment
	for _, c := range f.GitHub.Comments(testRepo, int(on.PullRequest.Number)) {
		out = append(out, providertest.Comment{Ours: c.Author == "plumbline[bot]", Body: c.Body, Edits: c.Edits})
	}
	return out
}

func (f *fake) DeleteComments(on *v1alpha1.GitEventSpec) {
	for _, c := range f.GitHub.Comments(testRepo, int(on.PullRequest.Number)) {
		if c.Author == "plumbline[bot]" {
			f.DeleteComment(testRepo, c.ID)
		}
	}
}

func (f *fake) Imitate(on *v1alpha1.GitEventSpec, user, body string) {
	f.GitHub.Comment(testRepo, int(on.PullRequest.Number), user, body)
}

func (f *fake) Lock(on *v1alpha1.GitEventSpec) {
	f.LockPull(testRepo, int(on.PullRequest.Number), true)
}
