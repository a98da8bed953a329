// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	appID     = 7
	hubRepo   = "acme/app"
	hubOwner  = "acme"
	hubSecret = "webhook-secret-of-the-campaign"
	// unlimited is more requests than any campaign makes: an hour's limit would end it.
	unlimited = 1 << 30
)

// github is a host.
type github struct {
	*forge.GitHub
	app  forge.App
	page string // of the repository
	url  string // where deliveries go
	base string // the oldest commit
}

func newGitHub(key string) (*github, error) {
	g := &github{GitHub: forge.New(forge.Options{RateLimit: unlimited, RefuseEarlyConclusion: true})}
	if err := g.Start(); err != nil {
		return nil, fmt.Errorf("starting GitHub: %w", err)
	}
	g.app = g.CreateApp(appID, "plumbline", key, hubSecret)
	g.page = g.CreateRepo(hubOwner, "app", forge.RepoOptions{}).HTMLURL
	g.Install(appID, hubOwner, hubRepo)
	g.SetCollaborator(hubRepo, author, "write")
	g.base = g.Commit(hubRepo, "main", files("warm", 0, 0))
	return g, nil
}

func (*github) kind() string { return "github" }

func (g *github) connect(context.Context, *stage) (pacv1alpha1.RepositorySpec, error) {
	return pacv1alpha1.RepositorySpec{URL: g.page}, nil
}

func (g *github) push(branch string, change forge.Change) delivery {
	g.Commit(hubRepo, branch, change)
	return g.PushDelivery(forge.PushEvent{Repo: hubRepo, Ref: "refs/heads/" + branch})
}

func (g *github) open(branch string, change forge.Change) int {
	g.Commit(hubRepo, branch, change)
	return g.OpenPullRequest(forge.NewPull{Base: hubRepo, HeadBranch: branch})
}

func (g *github) pull(number int, action string) delivery {
	if action == closed {
		g.ClosePull(hubRepo, number)
	}
	return g.PullRequestDelivery(forge.PullEvent{Repo: hubRepo, Number: number, Action: action})
}

func (g *github) send(ctx context.Context, d delivery) int {
	code, _, _ := g.Deliver(ctx, g.url, d.(forge.Delivery))
	return code
}

func (g *github) inject(f forge.Fault) *forge.FaultHandle { return g.Inject(f) }

func (g *github) seen() invariants.Service { return invariants.GitHub{GitHub: g.GitHub} }

func (g *github) close() error { return g.Close() }

func (g *github) root() string { return g.base }

func (*github) routes() []string {
	return []string{
		"", forge.RouteCheckCreate, forge.RouteCheckCreate, forge.RouteCheckUpdate, forge.RouteCheckUpdate, forge.RouteCheckList, forge.RouteCheckGet,
		forge.RouteTree, forge.RouteBlob, forge.RouteRef, forge.RouteToken, forge.RouteRepo, forge.RouteCommit,
	}
}
