// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const repoName = "acme/app"

// somebody is the actor where a scenario does not name one.
const somebody = "octocat"

// onGitHub is the service that a GitHub App serves. Scenarios that are about GitHub alone use
// environment.forge.
type onGitHub struct {
	*forge.GitHub
	app  forge.App
	repo forge.Repo
	// installation is the App's on the repository.
	installation int64
	// installed is the installation on the repository that elsewhere is about.
	installed int64
}

func (*onGitHub) kind() kind { return githubApp }

func (g *onGitHub) url() string { return g.URL() }

func (g *onGitHub) page(file ...string) string {
	return strings.Join(append([]string{g.repo.HTMLURL}, prefixed("blob/main", file)...), "/")
}

func prefixed(prefix string, file []string) []string {
	if len(file) == 0 {
		return nil
	}
	return append([]string{prefix}, file...)
}

func (g *onGitHub) connect(*environment) pacv1alpha1.RepositorySpec {
	return pacv1alpha1.RepositorySpec{URL: g.repo.HTMLURL}
}

func (g *onGitHub) secret(env *environment) (namespace, name, key string) {
	return env.Namespace, "plumbline-github-app", "webhook.secret"
}

func (g *onGitHub) commit(branch string, change forge.Change) string {
	return g.Commit(repoName, branch, change)
}

func (g *onGitHub) point(ref, sha string) {
	if tag, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag {
		g.CreateTag(repoName, tag, sha, somebody)
		return
	}
	g.SetBranch(repoName, ref, sha, somebody)
}

func (g *onGitHub) remove(ref string) {
	if tag, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag {
		g.DeleteTag(repoName, tag, somebody)
		return
	}
	g.DeleteBranch(repoName, ref, somebody)
}

func (g *onGitHub) tip(branch string) string { return g.Branches(repoName)[branch] }

func (g *onGitHub) create(name string, files map[string]string, file string) string {
	other := g.CreateRepo("acme", name, forge.RepoOptions{Private: true})
	g.Commit(other.FullName, "main", forge.Change{Files: files})
	return other.HTMLURL + "/blob/main/" + file
}

func (g *onGitHub) grant(user, role string) { g.SetCollaborator(repoName, user, role) }

func (g *onGitHub) join(team, user string) string {
	g.SetTeamMember("acme", team, user, "active")
	return team
}

func (g *onGitHub) fork(user string) string {
	g.AddUser(user)
	g.CreateRepo(user, "app", forge.RepoOptions{ForkOf: repoName})
	return g.commitFork(user, byUser(user))
}

func (g *onGitHub) commitFork(user string, change forge.Change) string {
	return g.Commit(user+"/app", "feature", change)
}

func byUser(user string) forge.Change {
	return forge.Change{Files: map[string]string{"README": "by " + user}, Author: user, Message: "change of " + user}
}

func (g *onGitHub) open(fork, branch, author string) int {
	pull := forge.NewPull{Base: repoName, HeadBranch: branch, Author: author}
	if fork != "" {
		pull.Head = fork + "/app"
	} else {
		g.grant(author, "write") // who pushed the branch
	}
	return g.OpenPullRequest(pull)
}

// closeFork has no effect: check runs belong to the repository itself, wherever the commit is
// from.
func (*onGitHub) closeFork(string, bool) {}

func (g *onGitHub) pushed(ref string) delivery {
	return g.PushDelivery(forge.PushEvent{Repo: repoName, Ref: ref})
}

func (g *onGitHub) pulled(number int, action string) delivery {
	return g.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: action})
}

func (g *onGitHub) signed(d delivery, body []byte, secret string) delivery {
	signed := d.(forge.Delivery)
	signed.Body = body
	signed.Sign(secret)
	return signed
}

func (g *onGitHub) deliver(ctx context.Context, url string, d delivery) (int, []byte, error) {
	return g.Deliver(ctx, url, d.(forge.Delivery))
}

func (g *onGitHub) redeliver(ctx context.Context, key string) (int, []byte, error) {
	return g.Redeliver(ctx, key)
}

func (g *onGitHub) checks(sha string) []check { return invariants.GitHub{GitHub: g.GitHub}.Checks(sha) }

func (g *onGitHub) await(ctx context.Context, sha string, ok func([]check) bool) error {
	return g.WaitFor(ctx, func(s *forge.State) bool { return ok(invariants.GitHubChecks(s.ChecksFor(repoName, sha))) })
}

func (g *onGitHub) log() (all traffic) {
	for _, request := range g.Requests() {
		// these calls are for no event
		if request.Route != forge.RouteAppDeliveries && request.Route != forge.RouteAppRedeliver {
			all.requests = append(all.requests, request)
		}
	}
	seen := invariants.GitHub{GitHub: g.GitHub}
	all.writes, all.deliveries = seen.Writes(), seen.Deliveries()
	return all
}

func (g *onGitHub) route(at operation) string {
	return map[operation]string{
		createCheck: forge.RouteCheckCreate, updateCheck: forge.RouteCheckUpdate, findChecks: forge.RouteCheckList,
		readCheck: forge.RouteCheckGet, readDirectory: forge.RouteTree, readFile: forge.RouteBlob,
		readReference: forge.RouteContents, readCommit: forge.RouteCommit, readBranch: forge.RouteRef,
		readRepository: forge.RouteRepo, listChanges: forge.RouteCompare, askPermission: forge.RoutePermission,
		askTeam: forge.RouteTeamMembership, askMember: forge.RouteCollaborator, writeComment: forge.RouteCommentCreate,
		listPullFiles: forge.RoutePullFiles,
	}[at]
}

func (g *onGitHub) inject(at operation, f forge.Fault) *forge.FaultHandle {
	f.Route = g.route(at)
	return g.Inject(f)
}

func (g *onGitHub) says(how refusal) forge.Action {
	return map[refusal]forge.Action{
		unauthorized: forge.Unauthorized401(), forbidden: forge.Forbidden403(), notFound: forge.NotFound404(),
		busy: forge.Answer(http.StatusConflict, http.Header{"Content-Type": {"application/json"}},
			`{"message":"Conflict"}`),
		slowDown: forge.SecondaryRateLimit(time.Second),
	}[how]
}
