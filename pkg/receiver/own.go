// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"net/http"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// acceptOwn verifies a delivery with the secret that its Repository names, and records it. Whose it claims to be is looked
// up first: there is no other way to find the secret. A stranger causes that look-up and is told nothing else than whether
// there is a Repository of that URL, which A12 asks for: what no Repository is for is no error of its sender. The one
// exception is a Repository whose URL no controller has claimed yet: its first deliveries would be lost.
//
// A Repository without a webhook secret gets an error although GitLab disables a hook after some (L8): nobody has
// verified the delivery, so it cannot be answered like one that is ignored, and the hook's own page is where the user who
// forgot the secret looks.
func (h *Handler) acceptOwn(ctx context.Context, d *delivery) answer {
	canonical, err := v1alpha1.CanonicalURL(d.origin.URL)
	if err != nil {
		return ignored("NoRepository", "the delivery names no repository")
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return notFound(err)
	}
	service, err := h.Services.Of(ctx, repository)
	if err != nil {
		return unavailable("the Repository's Git service cannot be told at the moment", err)
	}
	if service.Webhook.Name == "" {
		return rejected(http.StatusUnauthorized, "NoWebhookSecret", "the Repository of "+canonical+" names no secret of its webhook: set git_provider.webhook_secret")
	}
	secret, err := h.Services.Secret(ctx, service.Webhook)
	if err != nil {
		return unavailable("the webhook secret cannot be read at the moment", err)
	}
	if err := d.verify(secret); err != nil {
		return unverified(err, canonical+": "+fault.Of(err).Message)
	}
	spec, err := d.provider.Webhook.Decode(d.header, d.body)
	if err != nil {
		return undecoded(err)
	}
	if refusal := otherHost(d, d.provider.BaseURL(service.URL, service.RepositoryURL, spec.Project), canonical, spec); refusal != nil {
		return *refusal
	}
	return h.record(ctx, d, repository, spec)
}

// Services reads where Repositories keep the credentials of their Git services.
type Services struct {
	// Global returns the global Repository, nil when there certainly is none.
	Global func(ctx context.Context) (*pacv1alpha1.Repository, error)
	// Secrets has the copies of those that Repositories name.
	Secrets *Copies
}

// Of returns the service of a Repository. Settings that contradict each other are an Operator fault.
func (s Services) Of(ctx context.Context, repository *pacv1alpha1.Repository) (pacv1alpha1.Service, error) {
	global, err := s.Global(ctx)
	if err != nil {
		return pacv1alpha1.Service{}, fmt.Errorf("reading the global Repository: %w", fault.FromKube(fault.VerbRead, err))
	}
	service, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil {
		return service, fault.Operatorf("BadRepository", "Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	return service, nil
}

// Secret returns the copy of a webhook's secret, as AppSecret does.
func (s Services) Secret(ctx context.Context, key pacv1alpha1.SecretKey) (WebhookSecret, error) {
	return s.Secrets.Secret(ctx, key)
}

// GlobalOf returns the global Repository of a view, for Services: what the cache does not have is asked live.
func GlobalOf(cached, live View, namespace, name string) func(context.Context) (*pacv1alpha1.Repository, error) {
	return func(ctx context.Context) (*pacv1alpha1.Repository, error) {
		if name == "" {
			return nil, nil
		}
		global, err := cached.Repository(ctx, namespace, name)
		if err == nil {
			return global, nil
		}
		global, err = live.Repository(ctx, namespace, name)
		if fault.Gone(err) {
			return nil, nil
		}
		return global, err
	}
}
