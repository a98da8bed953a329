// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	appID = 7
	// good is the tenant's repository, shown another one of the same owner, where untrusted users
	// open pull requests.
	good  = "acme/app"
	shown = "acme/open"
	// evil is a repository of another owner, who installed the same App.
	evil = "evil/app"
	// project is the attacker's on a GitLab of their own.
	project    = "evil/team/app"
	hookSecret = "secret-of-the-attackers-hook"
)

// stage is an installation with one receiver and one controller, a GitHub with the tenant and the
// attacker, and a GitLab of the attacker.
type stage struct {
	cluster              *cluster.Cluster
	forge                *forge.GitHub
	gitlab               *gitlab.GitLab
	installation         *installation.Installation
	tenant, attacker     string // namespaces
	again                bool   // Options.Again
	foreign              string // another one of the attacker's; "" until it is made
	receiver, controller *installation.Process
	listeners            []net.Listener // of hosts that hang
	hub                  forge.Delivery // a push of 24 MB, made before the attack begins
	lab                  gitlab.Delivery
}

// open starts everything. What it started is in the stage even when it fails.
func open(ctx context.Context, o Options) (*stage, error) {
	s := &stage{again: o.Again, cluster: o.Cluster, forge: forge.New(forge.Options{RateLimit: 1 << 30}),
		gitlab: gitlab.New(gitlab.Options{RateLimit: 1 << 30})}
	if err := errors.Join(s.forge.Start(), s.gitlab.Start()); err != nil {
		return s, err
	}
	app := s.forge.CreateApp(appID, "plumbline", "", "webhook-secret-of-the-app")
	for _, repo := range [][2]string{{"acme", "app"}, {"acme", "open"}, {"evil", "app"}} {
		s.forge.CreateRepo(repo[0], repo[1], forge.RepoOptions{})
	}
	s.forge.Install(appID, "acme", good, shown)
	s.forge.Install(appID, "evil", evil)
	s.gitlab.CreateProject(project, gitlab.ProjectOptions{Unprotected: true})
	s.gitlab.AddHook(project, "http://127.0.0.1:1", hookSecret) // each delivery is told where to go
	var errs [3]error
	s.tenant, errs[0] = o.Cluster.CreateNamespace(ctx, "tenant")
	s.attacker, errs[1] = o.Cluster.CreateNamespace(ctx, "attacker")
	s.installation, errs[2] = installation.New(ctx, installation.Options{
		Cluster: o.Cluster, Forge: s.forge, App: app, Programs: o.Programs, Limited: true,
	})
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	for name, repo := range map[string]string{"app": good, "open": shown} {
		errs[0] = errors.Join(errs[0],
			s.serve(ctx, s.tenant, name, pacv1alpha1.RepositorySpec{URL: s.forge.URL() + "/" + repo}))
	}
	errs[1] = s.serve(ctx, s.attacker, "github", pacv1alpha1.RepositorySpec{URL: s.forge.URL() + "/" + evil})
	s.receiver, s.controller, errs[2] = s.installation.Pair(ctx, false, nil, nil)
	return s, errors.Join(errs[:]...)
}

// serve creates a Repository.
func (s *stage) serve(ctx context.Context, namespace, name string, spec pacv1alpha1.RepositorySpec) error {
	_, err := s.installation.Serve(ctx, namespace, name, spec)
	return err
}

// serveGitLab creates a Repository on a GitLab, and the Secret with the webhook's secret; without a
// token it has none.
func (s *stage) serveGitLab(ctx context.Context, name, service, url, token string) error {
	project := installation.OnGitLab{Service: service, URL: url, Token: token, Hook: hookSecret}
	spec, err := project.Spec(ctx, s.installation, metav1.ObjectMeta{Namespace: s.attacker, Name: name})
	if err != nil {
		return err
	}
	return errors.Join(s.serve(ctx, s.attacker, name, spec), s.installation.Claimed(ctx, url))
}

// close ends everything. What cannot be removed ends with the cluster.
func (s *stage) close() error {
	for _, listener := range s.listeners {
		_ = listener.Close()
	}
	return errors.Join(s.installation.Close(s.tenant, s.attacker, s.foreign), s.forge.Close(), s.gitlab.Close())
}
