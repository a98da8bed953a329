// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/faults/page"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const botUser = "ci-bot"

// tokenFake is the forge without an App: the repository has a webhook and a user's token.
type tokenFake struct {
	*fake
	token string
}

func newWithToken(o Options) provider.Provider { return *New(o).WithToken }

func openTokenFake(t *testing.T) (*tokenFake, providertest.Env) {
	t.Helper()
	g := forge.New(forge.Options{})
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	repo := g.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
	g.CreateRepo("acme", "other", forge.RepoOptions{Private: true})
	g.AddHook(testRepo, testSecret)
	f := &tokenFake{fake: &fake{GitHub: g, t: t}, token: g.CreateToken(forge.NewToken{User: botUser, Repo: testRepo})}
	w := envOf(g, repo, 0)
	w.Provider, w.Mints, w.Service = newWithToken(Options{}), false, f
	w.Credentials = provider.Credentials{
		Token: f.token, From: "key provider.token of secret ci/app",
		Reach: egress.Policy{Allowed: egress.Hosts{"127.0.0.1"}},
	}
	// The mark of the run's name takes part of a description.
	w.MaxTitle, w.MaxText, w.Length = maxDescription-len(" (run-1)"), 0, utf8.RuneCountInString
	w.Shows = map[status.Conclusion]string{status.Cancelled: stateError, status.Skipped: stateSuccess}
	return f, w
}

func openTokenEnv(t *testing.T) providertest.Env {
	f, w := openTokenFake(t)
	w.Deliveries = f.deliveries()
	w.Recorded, w.Rows = recordings(t), f.rows()
	w.Page = func(t *testing.T, met []providertest.Met) {
		var lines []page.Line
		for _, m := range slices.DeleteFunc(met, func(m providertest.Met) bool { return !differs(m.When) }) {
			lines = append(lines, page.Line(m))
		}
		page.Check(t, "GitHub with a token", lines)
	}
	return w
}

func TestConformanceWithToken(t *testing.T) { providertest.Run(t, openTokenEnv) }

// Checks returns the statuses of each run as one check, the one that GitHub shows last.
func (f *tokenFake) Checks(sha string) (all []providertest.Check) {
	for _, s := range f.StatusesFor(testRepo, sha) {
		is := asCheck(s)
		at := slices.IndexFunc(all, func(c providertest.Check) bool {
			return c.Name == is.Name && c.ExternalID == is.ExternalID
		})
		if at >= 0 {
			is.ID, is.Updates = all[at].ID, all[at].Updates+1
			all = slices.Delete(all, at, at+1)
		}
		all = append(all, is)
	}
	return all
}

// current returns the newest status of a commit.
func (f *tokenFake) current(sha string) (shown forge.CommitStatus) {
	if all := f.StatusesFor(testRepo, sha); len(all) > 0 {
		shown = all[len(all)-1]
	}
	return shown
}

// postStatus sets a status as another product does.
func (f *tokenFake) postStatus(sha, context, state, description string) {
	f.t.Helper()
	client := gh.NewClient(nil).WithAuthToken(f.token)
	client.BaseURL, _ = url.Parse(f.APIURL())
	_, _, err := client.Repositories.CreateStatus(f.t.Context(), "acme", "app", sha,
		&gh.RepoStatus{Context: &context, State: &state, Description: &description})
	if err != nil {
		f.t.Fatal(err)
	}
}

// asCheck reads a status as users do: the run's name is in brackets at the end of the description.
func asCheck(s forge.CommitStatus) providertest.Check {
	c := providertest.Check{
		ID: strconv.FormatInt(s.ID, 10), Name: s.Context, Title: s.Description, DetailsURL: s.URL, State: "completed",
		Conclusion: s.State,
	}
	if at := strings.LastIndex(s.Description, " ("); at >= 0 {
		c.Title, c.ExternalID = s.Description[:at], strings.TrimSuffix(s.Description[at+2:], ")")
	}
	if s.State == statePending {
		c.State, c.Conclusion = "in_progress", ""
	}
	return c
}

func (f *tokenFake) Fail(op providertest.Operation, how providertest.Failure, count int) {
	route := map[providertest.Operation]string{
		// GitHub has one call for both.
		providertest.CreateCheck: forge.RouteStatusCreate, providertest.UpdateCheck: forge.RouteStatusCreate,
		providertest.FindChecks: forge.RouteStatusList,
	}[op]
	if route == "" {
		f.fake.Fail(op, how, count)
		return
	}
	f.Inject(forge.Fault{Route: route, Count: count, Do: action(how)})
}

func (f *tokenFake) Comments(on *v1alpha1.GitEventSpec) (all []providertest.Comment) {
	for _, c := range f.GitHub.Comments(testRepo, int(on.PullRequest.Number)) {
		all = append(all, providertest.Comment{Ours: c.Author == botUser, Body: c.Body, Edits: c.Edits})
	}
	return all
}

func (f *tokenFake) DeleteComments(on *v1alpha1.GitEventSpec) {
	for _, c := range f.GitHub.Comments(testRepo, int(on.PullRequest.Number)) {
		if c.Author == botUser {
			f.DeleteComment(testRepo, c.ID)
		}
	}
}

// Lock takes the write access from the token's user: a user with write access may comment.
func (f *tokenFake) Lock(on *v1alpha1.GitEventSpec) {
	f.SetCollaborator(testRepo, botUser, "read")
	f.fake.Lock(on)
}

// What a token meets and an App does not.
const (
	tokenRefused  = "the token is not accepted"
	tokenLacks    = "the token lacks a permission"
	tokenNoStatus = "the token may read and not set a status"
	tooManyOfOne  = "the commit has 1,000 statuses of the context"
)

func differs(when string) bool {
	return slices.Contains([]string{tokenRefused, tokenLacks, tokenNoStatus, tooManyOfOne}, when)
}

// rows are those of the App that do not depend on one, and those of a token.
func (f *tokenFake) rows() []providertest.Row {
	rows := slices.DeleteFunc(f.rowsAt(forge.RouteStatusCreate, newWithToken), func(row providertest.Row) bool {
		return row.Op == providertest.MintToken || row.Name == "G5" || strings.Contains(row.When, "App") ||
			row.When == "what is written to is not found"
	})
	fails := func(name, when string, do forge.Action, reason string) {
		rows = append(rows, providertest.Row{
			Name: name, When: when, Op: providertest.CreateCheck, Class: fault.Operator, Reason: reason,
			Fail: func() { f.Inject(forge.Fault{Route: forge.RouteStatusCreate, Do: do}) },
		})
	}
	json := http.Header{"Content-Type": {"application/json"}}
	fails("G5", tokenRefused, forge.Unauthorized401(), fault.ReasonCredentialsRefused)
	fails("G6", tokenLacks, forge.Answer(http.StatusForbidden, json,
		`{"message":"Resource not accessible by personal access token"}`), fault.ReasonPermissionMissing)
	fails("G8", tokenNoStatus, forge.NotFound404(), fault.ReasonPermissionMissing)
	fails("G10", tooManyOfOne, forge.Answer(http.StatusUnprocessableEntity, json, `{"message":"Validation Failed",`+
		`"errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}]}`),
		fault.ReasonGitRejected)
	return rows
}
