// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	appID    = 7
	repoName = "acme/app"
	// pageSize is for reading back what was recorded.
	pageSize = 500
)

// stage is what the receivers work with: an installation, and a Repository that owns its URL.
type stage struct {
	forge        *forge.GitHub
	installation *installation.Installation
	tenant       string
}

func open(ctx context.Context, o Options) (*stage, error) {
	s := &stage{forge: forge.New(forge.Options{})}
	if err := s.forge.Start(); err != nil {
		return nil, fmt.Errorf("starting the forge: %w", err)
	}
	app := s.forge.CreateApp(appID, "plumbline", o.Key, "webhook-secret-of-the-soak")
	repo := s.forge.CreateRepo("acme", "app", forge.RepoOptions{})
	s.forge.Install(app.ID, "acme", repoName)
	s.forge.Commit(repoName, "main", forge.Change{Message: "change"})
	var err error
	if s.tenant, err = o.Cluster.CreateNamespace(ctx, "ci"); err != nil {
		return nil, err
	}
	s.installation, err = installation.New(ctx,
		installation.Options{Cluster: o.Cluster, Forge: s.forge, App: app, Programs: o.Programs})
	if err != nil {
		return nil, err
	}
	return s, s.claim(ctx, repo.HTMLURL)
}

// claim makes a Repository and, in the controller's place, its claim.
func (s *stage) claim(ctx context.Context, url string) error {
	repository, err := s.installation.Serve(ctx, s.tenant, "app", pacv1alpha1.RepositorySpec{URL: url})
	if err != nil {
		return err
	}
	canonical, err := v1alpha1.CanonicalURL(url)
	if err != nil {
		return err
	}
	_, err = s.installation.Plumbline.PlumblineV1alpha1().RepositoryClaims(s.installation.Namespace).Create(
		ctx, &v1alpha1.RepositoryClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.installation.Namespace, Name: v1alpha1.ClaimName(canonical)},
			Spec: v1alpha1.RepositoryClaimSpec{
				URL: canonical, Repository: v1alpha1.ClaimOwner{Namespace: s.tenant, Name: repository.Name, UID: repository.UID},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the claim: %w", err)
	}
	return nil
}

// delivery is the nth: a push, which is recorded, and a ping or a star, which are ignored, in turn.
func (s *stage) delivery(n int) forge.Delivery {
	switch n % 4 {
	case 1:
		return s.forge.PingDelivery(appID)
	case 3:
		return s.forge.EventDelivery(appID, "star", map[string]any{"action": "created"})
	}
	return s.forge.PushDelivery(forge.PushEvent{Repo: repoName, Ref: "refs/heads/main"})
}

// lost counts the deliveries that were answered 202 and have not exactly one GitEvent.
func (s *stage) lost(ctx context.Context, accepted []string) (lost int, err error) {
	records := map[string]int{}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := s.installation.Plumbline.PlumblineV1alpha1().GitEvents(s.installation.Namespace).List(ctx, options)
		if err != nil {
			return 0, fmt.Errorf("reading the GitEvents: %w", err)
		}
		for i := range page.Items {
			records[page.Items[i].Spec.DeliveryKey]++
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	for _, guid := range accepted {
		if records[guid] != 1 {
			lost++
		}
	}
	return lost, nil
}
