// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	projectName = "acme/team/app"
	// gitlabSecret is the Secret that the Repository names, of the same name as the Repository.
	gitlabSecret = "app"
	hookSecret   = "secret-of-the-gitlab-hook"
	// noURL is where hooks point: each delivery names its own target.
	noURL = "http://127.0.0.1:1"
)

// onGitLab is a project on a GitLab, with a token of a bot that is a Developer there.
type onGitLab struct {
	*gitlab.GitLab
	repo  gitlab.Project
	token gitlab.Token
	hook  int64
	forks map[string]gitlab.Project // by user
	heads map[int64]string          // of merge requests, as they were opened
}

// setUp starts the GitLab and creates what scenarios find on it.
func (g *onGitLab) setUp() error {
	if err := g.Start(); err != nil {
		return err
	}
	g.repo = g.CreateProject(projectName, gitlab.ProjectOptions{Unprotected: true})
	g.token = g.CreateToken(gitlab.NewToken{Project: projectName})
	g.hook = g.AddHook(projectName, noURL, hookSecret)
	return nil
}

func (*onGitLab) kind() kind { return gitLab }

func (g *onGitLab) url() string { return g.URL() }

func (g *onGitLab) page(file ...string) string {
	return strings.Join(append([]string{g.repo.WebURL}, prefixed("-/blob/main", file)...), "/")
}

func (g *onGitLab) connect(env *environment) pacv1alpha1.RepositorySpec {
	env.t.Helper()
	_, err := env.Kube.CoreV1().Secrets(env.ci).Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: gitlabSecret},
		StringData: map[string]string{"provider.token": g.token.Value, "webhook.secret": hookSecret},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) { // the Repository was created again
		env.must(err)
	}
	return pacv1alpha1.RepositorySpec{URL: g.repo.WebURL, GitProvider: &pacv1alpha1.GitProvider{
		Type: "gitlab", URL: g.URL(), Secret: &pacv1alpha1.Secret{Name: gitlabSecret},
		WebhookSecret: &pacv1alpha1.Secret{Name: gitlabSecret},
	}}
}

func (g *onGitLab) secret(env *environment) (namespace, name, key string) {
	return env.ci, gitlabSecret, "webhook.secret"
}

// updateGitLabSecret writes the data into the Secret that the Repository on a GitLab names.
func (env *environment) updateGitLabSecret(data map[string]string) {
	env.t.Helper()
	secrets := env.Kube.CoreV1().Secrets(env.ci)
	_ = secrets.Delete(env.ctx, gitlabSecret, metav1.DeleteOptions{})
	env.must(errOf(secrets.Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: gitlabSecret}, StringData: data,
	}, metav1.CreateOptions{})))
}

func (g *onGitLab) commit(branch string, change forge.Change) string {
	return g.Commit(projectName, branch, change)
}

func (g *onGitLab) point(ref, sha string) {
	if tag, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag {
		g.CreateTag(projectName, tag, sha, somebody)
		return
	}
	g.SetBranch(projectName, ref, sha, somebody)
}

func (g *onGitLab) remove(ref string) {
	if tag, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag {
		g.DeleteTag(projectName, tag, somebody)
		return
	}
	g.DeleteBranch(projectName, ref, somebody)
}

func (g *onGitLab) tip(branch string) string { return g.Branches(projectName)[branch] }

func (g *onGitLab) create(name string, files map[string]string, file string) string {
	other := g.CreateProject("acme/team/"+name, gitlab.ProjectOptions{})
	g.Commit(other.FullPath, "main", forge.Change{Files: files})
	return other.WebURL + "/-/blob/main/" + file
}

func (g *onGitLab) grant(user, role string) {
	level := map[string]gitlab.Level{"read": gitlab.Reporter, "write": gitlab.Developer, "admin": gitlab.Maintainer}[role]
	g.AddUser(user)
	g.SetMember(projectName, user, level)
}

func (g *onGitLab) join(team, user string) string {
	space := projectName[:strings.LastIndex(projectName, "/")]
	g.CreateGroup(space + "/" + team)
	g.SetMember(space, g.token.User.Username, gitlab.Guest) // so that it sees its groups
	g.AddUser(user)
	g.SetMember(space+"/"+team, user, gitlab.Guest)
	return space + "/" + team
}

// fork creates a fork that accepts the bot's statuses; closeFork ends that.
func (g *onGitLab) fork(user string) string {
	g.AddUser(user)
	fork := g.CreateProject(user+"/app", gitlab.ProjectOptions{ForkOf: projectName})
	g.forks[user] = fork
	g.SetMember(fork.FullPath, g.token.User.Username, gitlab.Developer)
	return g.commitFork(user, byUser(user))
}

func (g *onGitLab) commitFork(user string, change forge.Change) string {
	return g.Commit(user+"/app", "feature", change)
}

func (g *onGitLab) open(fork, branch, author string) int {
	request := gitlab.NewMergeRequest{Target: projectName, SourceBranch: branch, Author: author}
	if fork != "" {
		request.Source = fork + "/app"
	} else {
		g.grant(author, "write") // who pushed the branch
	}
	iid := g.OpenMergeRequest(request)
	g.heads[iid] = g.Branches(cmp.Or(request.Source, projectName))[branch]
	return int(iid)
}

func (g *onGitLab) closeFork(user string, hidden bool) {
	g.SetMember(user+"/app", g.token.User.Username, gitlab.NoAccess)
	if !hidden {
		g.SetVisibility(projectName, gitlab.Public)
		g.SetVisibility(user+"/app", gitlab.Public)
	}
}

func (g *onGitLab) pushed(ref string) delivery {
	return g.PushDelivery(gitlab.PushEvent{Project: projectName, Ref: ref})
}

func (g *onGitLab) pulled(number int, action string) delivery {
	theirs, known := map[string]string{"opened": "open", "synchronize": "update", "reopened": "reopen", "closed": "close",
		"merged": "merge", "edited": "update"}[action]
	if !known {
		panic("GitLab has no action " + action)
	}
	return g.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: projectName, IID: int64(number), Action: theirs})
}

func (g *onGitLab) signed(d delivery, body []byte, secret string) delivery {
	signed := d.(gitlab.Delivery)
	signed.Body = body
	signed.SetToken(secret)
	return signed
}

func (g *onGitLab) deliver(ctx context.Context, url string, d delivery) (int, []byte, error) {
	return g.Deliver(ctx, url, d.(gitlab.Delivery))
}

func (g *onGitLab) redeliver(ctx context.Context, key string) (int, []byte, error) {
	return g.Resend(ctx, key)
}

func (g *onGitLab) route(at operation) string {
	return map[operation]string{
		createCheck: gitlab.RouteStatusCreate, updateCheck: gitlab.RouteStatusCreate, findChecks: gitlab.RouteStatusList,
		readCheck: gitlab.RouteStatusList, readDirectory: gitlab.RouteTree, readFile: gitlab.RouteFile,
		// a branch includes its commit
		readReference: gitlab.RouteFile, readCommit: gitlab.RouteBranch, readBranch: gitlab.RouteBranch,
		readRepository: gitlab.RouteProject, listChanges: gitlab.RouteCompare, askPermission: gitlab.RouteMembers,
		askTeam: gitlab.RouteGroupMembers, askMember: gitlab.RouteMembers, writeComment: gitlab.RouteNoteCreate,
		listPullFiles: gitlab.RouteMRDiffs,
	}[at]
}

func (g *onGitLab) inject(at operation, f forge.Fault) *forge.FaultHandle {
	f.Route = g.route(at)
	if at == readCheck && f.From == 0 {
		f.From = 2 // the first look-up is for a check that does not exist yet
	}
	if at == updateCheck { // GitLab has one call for both, and only the first sets queued
		f.Match = func(r *http.Request) bool {
			body, err := io.ReadAll(r.Body)
			return err == nil && !bytes.Contains(body, []byte(`pending`))
		}
	}
	return g.Inject(f)
}

func (g *onGitLab) says(how refusal) forge.Action {
	return map[refusal]forge.Action{
		unauthorized: gitlab.Revoked401(), forbidden: gitlab.Forbidden403(), notFound: gitlab.NotFound404(),
		busy: gitlab.Conflict409(),
		slowDown: forge.Answer(http.StatusTooManyRequests, http.Header{"Content-Type": {"text/plain"}, "Retry-After": {"1"}},
			"Retry later\n"),
	}[how]
}

// seen returns the state of the GitLab in GitHub's words.
func (g *onGitLab) seen() invariants.GitLab {
	return invariants.GitLab{GitLab: g.GitLab, Project: projectName, Bot: g.token.User.Username, Heads: g.heads}
}

func (g *onGitLab) checks(sha string) []check { return g.seen().Checks(sha) }

func (g *onGitLab) await(ctx context.Context, sha string, ok func([]check) bool) error {
	return g.WaitFor(ctx, func(s *gitlab.State) bool { return ok(g.seen().Shown(s, sha)) })
}

func (g *onGitLab) log() (all traffic) {
	for _, request := range g.Requests() {
		if !strings.HasPrefix(request.Route, "hooks.") { // these calls are for no event
			all.requests = append(all.requests, request)
		}
	}
	seen := g.seen()
	all.writes, all.deliveries = seen.Writes(), seen.Deliveries()
	return all
}
