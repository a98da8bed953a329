// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// labSecret is the Secret that a Repository names.
const labSecret = "gitlab"

// onLab is a service.
type onLab struct{ *gitlab.GitLab }

// labProject is a project of an onLab, with a token and a webhook of its own.
type labProject struct {
	*gitlab.GitLab
	gitlab.Project
	token gitlab.Token
	hook  string // the webhook's secret
	base  string // the oldest commit
	fork  string // the outsider's
}

func newGitLab() (*onLab, error) {
	// A pull request's event tells of a push of the last 30 s: times must not run ahead.
	g := &onLab{gitlab.New(gitlab.Options{RateLimit: unlimited, KeepFailingHooks: true, ClockTimes: true})}
	if err := g.Start(); err != nil {
		return nil, fmt.Errorf("starting GitLab: %w", err)
	}
	g.AddUser(author)
	g.AddUser(outsider)
	return g, nil
}

func (g *onLab) found(owner string) (project, string) {
	path := owner + "/team/app"
	p := &labProject{GitLab: g.GitLab, hook: "secret-of-the-hook-of-" + owner}
	// untrusted users may comment
	p.Project = g.CreateProject(path, gitlab.ProjectOptions{Unprotected: true, Visibility: gitlab.Public})
	p.token = g.CreateToken(gitlab.NewToken{Project: path})
	g.SetMember(path, author, gitlab.Developer)
	g.AddHook(path, "http://"+nowhere, p.hook) // each delivery is told where to go
	p.base = g.Commit(path, "main", files("warm", 0, 0))
	p.fork = g.CreateProject(outsider+"/app-of-"+owner,
		gitlab.ProjectOptions{ForkOf: path, Visibility: gitlab.Public}).FullPath
	g.SetMember(p.fork, p.token.User.Username, gitlab.Developer)
	return p, path
}

// seen finds the projects by the writes to them. No notes are written, because the token may write
// statuses in the forks, too.
func (g *onLab) seen() invariants.Service { return invariants.GitLab{GitLab: g.GitLab} }

func (*onLab) routes() []string {
	return []string{
		"", gitlab.RouteStatusCreate, gitlab.RouteStatusCreate, gitlab.RouteStatusCreate, gitlab.RouteStatusList,
		gitlab.RouteTree,
		gitlab.RouteFile, gitlab.RouteBranch, gitlab.RouteProject, gitlab.RouteMergeRequest, gitlab.RouteNoteGet,
		gitlab.RouteMember,
	}
}

func (p *labProject) connect(ctx context.Context, i *installation.Installation,
	namespace string) (pacv1alpha1.RepositorySpec, error) {
	project := installation.OnGitLab{Service: p.URL(), URL: p.WebURL, Token: p.token.Value, Hook: p.hook}
	return project.Spec(ctx, i, metav1.ObjectMeta{Namespace: namespace, Name: labSecret})
}

func (p *labProject) push(branch string, change forge.Change) delivery {
	p.Commit(p.FullPath, branch, change)
	return p.PushDelivery(gitlab.PushEvent{Project: p.FullPath, Ref: "refs/heads/" + branch})
}

func (p *labProject) send(ctx context.Context, url string, d delivery) int {
	code, _, _ := p.Deliver(ctx, url, d.(gitlab.Delivery))
	return code
}

func (p *labProject) root() string { return p.base }

func (p *labProject) tip(branch string) string { return p.Branches(p.FullPath)[branch] }

func (p *labProject) open(branch string, change forge.Change) int {
	p.Commit(p.FullPath, branch, change)
	return int(p.OpenMergeRequest(gitlab.NewMergeRequest{Target: p.FullPath, SourceBranch: branch, Author: author}))
}

func (p *labProject) openFork(branch string, change forge.Change) (int, string) {
	head := p.pushFork(branch, change)
	return int(p.OpenMergeRequest(gitlab.NewMergeRequest{
		Target: p.FullPath, Source: p.fork, SourceBranch: branch, Author: outsider,
	})), head
}

func (p *labProject) pushFork(branch string, change forge.Change) string {
	return p.Commit(p.fork, branch, change)
}

// checksAt returns the project and its fork: statuses of a fork's commit are first written there.
func (p *labProject) checksAt() []string { return []string{p.FullPath, p.fork} }

func (p *labProject) tell(number int, action string) delivery {
	if action == closed {
		p.CloseMergeRequest(p.FullPath, int64(number), author)
	}
	theirs := map[string]string{opened: "open", synchronize: "update", closed: "close"}[action]
	return p.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: p.FullPath, IID: int64(number), Action: theirs})
}

func (p *labProject) comment(number int, user, body string) delivery {
	return p.NoteDelivery(p.AddNote(p.FullPath, int64(number), user, body))
}
