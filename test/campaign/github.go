// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	appID     = 7
	hubSecret = "webhook-secret-of-the-campaign"
	// unlimited is more requests than any campaign makes: an hour's limit would end it.
	unlimited = 1 << 30
)

// github is a service. Its repositories share an App.
type github struct {
	*forge.GitHub
	app forge.App
}

// hubRepo is a project of a github.
type hubRepo struct {
	*forge.GitHub
	name string // with its owner
	page string
	base string // the oldest commit
	fork string // the outsider's
}

func newGitHub() (*github, error) {
	g := &github{GitHub: forge.New(forge.Options{RateLimit: unlimited, RefuseEarlyConclusion: true})}
	if err := g.Start(); err != nil {
		return nil, fmt.Errorf("starting GitHub: %w", err)
	}
	g.app = g.CreateApp(appID, "plumbline", "", hubSecret)
	g.AddUser(outsider)
	return g, nil
}

// found installs the App on the owner, too.
func (g *github) found(owner string) (project, string) {
	r := &hubRepo{GitHub: g.GitHub, name: owner + "/app"}
	r.page = g.CreateRepo(owner, "app", forge.RepoOptions{}).HTMLURL
	g.Install(appID, owner, r.name)
	g.SetCollaborator(r.name, author, "write")
	r.base = g.Commit(r.name, "main", files("warm", 0, 0))
	r.fork = g.CreateRepo(outsider, "app-of-"+owner, forge.RepoOptions{ForkOf: r.name}).FullName
	return r, r.name
}

func (g *github) seen() invariants.Service { return invariants.GitHub{GitHub: g.GitHub} }

func (*github) routes() []string {
	return []string{
		"", forge.RouteCheckCreate, forge.RouteCheckCreate, forge.RouteCheckUpdate, forge.RouteCheckUpdate,
		forge.RouteCheckList, forge.RouteCheckGet,
		forge.RouteTree, forge.RouteBlob, forge.RouteRef, forge.RouteToken, forge.RouteRepo, forge.RouteCommit,
		forge.RoutePull, forge.RoutePermission,
	}
}

func (r *hubRepo) connect(context.Context, *installation.Installation, string) (pacv1alpha1.RepositorySpec, error) {
	return pacv1alpha1.RepositorySpec{URL: r.page}, nil
}

func (r *hubRepo) push(branch string, change forge.Change) delivery {
	r.Commit(r.name, branch, change)
	return r.PushDelivery(forge.PushEvent{Repo: r.name, Ref: "refs/heads/" + branch})
}

func (r *hubRepo) send(ctx context.Context, url string, d delivery) int {
	code, _, _ := r.Deliver(ctx, url, d.(forge.Delivery))
	return code
}

func (r *hubRepo) root() string { return r.base }

func (r *hubRepo) tip(branch string) string { return r.Branches(r.name)[branch] }

func (r *hubRepo) open(branch string, change forge.Change) int {
	r.Commit(r.name, branch, change)
	return r.OpenPullRequest(forge.NewPull{Base: r.name, HeadBranch: branch})
}

func (r *hubRepo) openFork(branch string, change forge.Change) (int, string) {
	head := r.pushFork(branch, change)
	return r.OpenPullRequest(forge.NewPull{Base: r.name, Head: r.fork, HeadBranch: branch, Author: outsider}), head
}

func (r *hubRepo) pushFork(branch string, change forge.Change) string {
	return r.Commit(r.fork, branch, change)
}

// checksAt returns the project itself: check runs are in the repository that the App is installed
// on.
func (r *hubRepo) checksAt() []string { return []string{r.name} }

func (r *hubRepo) tell(number int, action string) delivery {
	if action == closed {
		r.ClosePull(r.name, number)
	}
	return r.PullRequestDelivery(forge.PullEvent{Repo: r.name, Number: number, Action: action})
}

func (r *hubRepo) comment(number int, user, body string) delivery {
	return r.CommentDelivery(forge.CommentEvent{Repo: r.name, ID: r.Comment(r.name, number, user, body)})
}
