// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	labProject = "acme/team/app"
	labSecret  = "gitlab" // the Secret that the Repository names
	labHook    = "secret-of-the-campaigns-hook"
)

// onLab is a host.
type onLab struct {
	*gitlab.GitLab
	project gitlab.Project
	token   gitlab.Token
	url     string // where deliveries go
	base    string // the oldest commit
}

func newGitLab() (*onLab, error) {
	g := &onLab{GitLab: gitlab.New(gitlab.Options{RateLimit: unlimited, KeepFailingHooks: true})}
	if err := g.Start(); err != nil {
		return nil, fmt.Errorf("starting GitLab: %w", err)
	}
	g.project = g.CreateProject(labProject, gitlab.ProjectOptions{Unprotected: true})
	g.token = g.CreateToken(gitlab.NewToken{Project: labProject})
	g.AddUser(author)
	g.SetMember(labProject, author, gitlab.Developer)
	g.AddHook(labProject, "http://"+nowhere, labHook) // each delivery is told where to go
	g.base = g.Commit(labProject, "main", files("warm", 0, 0))
	return g, nil
}

func (*onLab) kind() string { return "gitlab" }

func (g *onLab) connect(ctx context.Context, s *stage) (pacv1alpha1.RepositorySpec, error) {
	_, err := s.installation.Kube.CoreV1().Secrets(s.tenant).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: labSecret},
		StringData: map[string]string{"provider.token": g.token.Value, "webhook.secret": labHook},
	}, metav1.CreateOptions{})
	return pacv1alpha1.RepositorySpec{URL: g.project.WebURL, GitProvider: &pacv1alpha1.GitProvider{
		Type: "gitlab", URL: g.URL(), Secret: &pacv1alpha1.Secret{Name: labSecret}, WebhookSecret: &pacv1alpha1.Secret{Name: labSecret},
	}}, err
}

func (g *onLab) push(branch string, change forge.Change) delivery {
	g.Commit(labProject, branch, change)
	return g.PushDelivery(gitlab.PushEvent{Project: labProject, Ref: "refs/heads/" + branch})
}

func (g *onLab) open(branch string, change forge.Change) int {
	g.Commit(labProject, branch, change)
	return int(g.OpenMergeRequest(gitlab.NewMergeRequest{Target: labProject, SourceBranch: branch, Author: author}))
}

func (g *onLab) pull(number int, action string) delivery {
	if action == closed {
		g.CloseMergeRequest(labProject, int64(number), author)
	}
	theirs := map[string]string{opened: "open", synchronize: "update", closed: "close"}[action]
	return g.MergeRequestDelivery(gitlab.MergeRequestEvent{Project: labProject, IID: int64(number), Action: theirs})
}

func (g *onLab) send(ctx context.Context, d delivery) int {
	code, _, _ := g.Deliver(ctx, g.url, d.(gitlab.Delivery))
	return code
}

func (g *onLab) inject(f forge.Fault) *forge.FaultHandle { return g.Inject(f) }

func (g *onLab) seen() invariants.Service {
	return invariants.GitLab{GitLab: g.GitLab, Project: labProject, Bot: g.token.User.Username}
}

func (g *onLab) close() error { return g.Close() }

func (g *onLab) root() string { return g.base }

func (*onLab) routes() []string {
	return []string{
		"", gitlab.RouteStatusCreate, gitlab.RouteStatusCreate, gitlab.RouteStatusCreate, gitlab.RouteStatusList, gitlab.RouteTree,
		gitlab.RouteFile, gitlab.RouteBranch, gitlab.RouteProject, gitlab.RouteMergeRequest,
	}
}
