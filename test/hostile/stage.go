// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	appID = 7
	// good is the tenant's repository, shown another one of the same owner, where strangers open pull requests.
	good  = "acme/app"
	shown = "acme/open"
	// evil is a repository of another owner, who installed the same App.
	evil = "evil/app"
	// project is the attacker's on a GitLab of their own.
	project    = "evil/team/app"
	hookSecret = "secret-of-the-attackers-hook"
	// ready bounds what the start of a stage waits for, closing its end.
	ready   = 2 * time.Minute
	closing = 30 * time.Second
)

// stage is an installation with one receiver and one controller, a GitHub with the tenant and the attacker, and a GitLab of the
// attacker's.
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
	s := &stage{again: o.Again, cluster: o.Cluster, forge: forge.New(forge.Options{RateLimit: 1 << 30}), gitlab: gitlab.New(gitlab.Options{RateLimit: 1 << 30})}
	if err := errors.Join(s.forge.Start(), s.gitlab.Start()); err != nil {
		return s, err
	}
	app := s.forge.CreateApp(appID, "plumbline", o.Key, "webhook-secret-of-the-app")
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
	system, err := o.Cluster.CreateNamespace(ctx, "plumbline")
	if err := errors.Join(append(errs[:], err)...); err != nil {
		return s, err
	}
	s.installation, err = installation.New(ctx, installation.Options{
		Cluster: o.Cluster, Forge: s.forge, App: app, Programs: o.Programs, Namespace: system, Limited: true,
	})
	if err != nil {
		return s, err
	}
	for name, repo := range map[string]string{"app": good, "open": shown} {
		errs[0] = errors.Join(errs[0], s.serve(ctx, s.tenant, name, pacv1alpha1.RepositorySpec{URL: s.forge.URL() + "/" + repo}))
	}
	errs[1] = s.serve(ctx, s.attacker, "github", pacv1alpha1.RepositorySpec{URL: s.forge.URL() + "/" + evil})
	errs[2] = s.start(ctx)
	return s, errors.Join(errs[:]...)
}

func (s *stage) start(ctx context.Context) (err error) {
	if s.receiver, err = s.installation.Receiver(ctx, false); err != nil {
		return err
	}
	if s.controller, err = s.installation.Controller(ctx, false); err != nil {
		return err
	}
	return errors.Join(s.controller.Start(ctx), s.receiver.Start(ctx)) // which is ready when the secrets are copied
}

// serve creates a Repository.
func (s *stage) serve(ctx context.Context, namespace, name string, spec pacv1alpha1.RepositorySpec) error {
	_, err := s.installation.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Create(ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	return err
}

// serveGitLab creates a Repository on a GitLab, and the Secret with the webhook's secret; without a token it has none.
func (s *stage) serveGitLab(ctx context.Context, name, service, url, token string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"webhook.secret": hookSecret}}
	if token != "" {
		secret.StringData["provider.token"] = token
	}
	if _, err := s.installation.Kube.CoreV1().Secrets(s.attacker).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := s.serve(ctx, s.attacker, name, pacv1alpha1.RepositorySpec{URL: url, GitProvider: &pacv1alpha1.GitProvider{
		Type: "gitlab", URL: service, Secret: &pacv1alpha1.Secret{Name: name}, WebhookSecret: &pacv1alpha1.Secret{Name: name},
	}})
	return errors.Join(err, s.claimed(ctx, url))
}

// claimed waits until a Repository owns a URL: before that, receivers answer that nobody does.
func (s *stage) claimed(ctx context.Context, url string) error {
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	claims := s.installation.Plumbline.PlumblineV1alpha1().RepositoryClaims(s.installation.Namespace)
	if err := cluster.Poll(ctx, 50*time.Millisecond, func() error {
		_, err := claims.Get(ctx, v1alpha1.ClaimName(canonical), metav1.GetOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("waiting for the claim of %s: %w", url, err)
	}
	return nil
}

// close ends everything. What cannot be removed ends with the cluster.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	var err error
	for _, p := range []*installation.Process{s.receiver, s.controller} {
		if p != nil {
			err = errors.Join(err, p.Kill())
			p.Limit.Release()
		}
	}
	for _, listener := range s.listeners {
		_ = listener.Close()
	}
	for _, namespace := range []string{s.tenant, s.attacker, s.foreign} {
		if namespace != "" {
			_ = s.cluster.DeleteNamespace(ctx, namespace)
		}
	}
	if s.installation != nil {
		_ = s.cluster.DeleteNamespace(ctx, s.installation.Namespace)
	}
	return errors.Join(err, s.forge.Close(), s.gitlab.Close())
}
