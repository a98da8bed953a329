// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// acceptOwn verifies a delivery with the secret that its Repository names, and records it. Whose it
// claims to be is looked up first: there is no other way to find the secret. Until it is verified
// everybody is a stranger, who must not learn whether there is a Repository of that URL: see
// unbelieved. What is for nobody is no error of a sender that vouch knows (A12).
func (h *Handler) acceptOwn(ctx context.Context, d *delivery) answer {
	canonical, err := v1alpha1.CanonicalURL(d.origin.URL)
	if err != nil {
		return ignored("NoRepository", "the delivery names no repository")
	}
	repository, refusal := h.ownerOf(ctx, d, canonical)
	if refusal != nil {
		return *refusal
	}
	service, err := h.Services.Of(ctx, repository)
	if err != nil {
		return unavailable("the Repository's Git service cannot be told at the moment", err)
	}
	if service.Webhook.Name == "" {
		return h.stranger(
			d,
			"NoWebhookSecret",
			"the Repository of "+canonical+" names no secret of its webhook: set git_provider.webhook_secret",
		)
	}
	secret, err := h.Services.Secret(ctx, service.Webhook)
	if err != nil {
		return unavailable("the webhook secret cannot be read at the moment", err)
	}
	// Nobody waits for a newer secret here: the time would tell strangers that the project is
	// onboarded.
	if err := d.verify(secret, false); err != nil {
		return unverified(
			err,
			func() answer { return h.stranger(d, "Unauthenticated", canonical+": "+fault.Of(err).Message) },
		)
	}
	d.verified = true
	if err := h.Recorder.Affords(repository.Namespace, d.origin.Push, len(d.body)); err != nil {
		return unrecorded(err) // before it is decoded
	}
	spec, err := d.decode()
	if err != nil {
		return undecoded(err)
	}
	if refusal := otherHost(
		d,
		d.provider.BaseURL(service.URL, service.RepositoryURL, spec.Project),
		canonical,
		spec,
	); refusal != nil {
		return *refusal
	}
	return h.record(ctx, d, repository, spec)
}

// Services reads where Repositories keep the credentials of their Git services.
type Services struct {
	// Global returns the global Repository, nil when there certainly is none.
	Global func(ctx context.Context) (*pacv1alpha1.Repository, error)
	// Secrets has the copies of those that Repositories name.
	Secrets *secrets.Copies
}

// GlobalRepository returns the global Repository, nil when there certainly is none.
func (s Services) GlobalRepository(ctx context.Context) (*pacv1alpha1.Repository, error) {
	global, err := s.Global(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the global Repository: %w", fault.FromKube(fault.VerbRead, err))
	}
	return global, nil
}

// Of returns the service of a Repository. Settings that contradict each other are an Operator
// fault.
func (s Services) Of(ctx context.Context, repository *pacv1alpha1.Repository) (pacv1alpha1.Service, error) {
	global, err := s.GlobalRepository(ctx)
	if err != nil {
		return pacv1alpha1.Service{}, err
	}
	service, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil {
		return service, fault.Operatorf("BadRepository", "Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	return service, nil
}

// Secret returns the copy of a webhook's secret, as secrets.AppSecret does.
func (s Services) Secret(ctx context.Context, key pacv1alpha1.SecretKey) (secrets.Secret, error) {
	return s.Secrets.Secret(ctx, key)
}

// Copy is as Secret, and neither waits nor asks for a copy.
func (s Services) Copy(key pacv1alpha1.SecretKey) (secrets.Secret, error) { return s.Secrets.Copy(key) }

// GlobalOf returns the global Repository of a view, for Services: what the cache does not have is
// asked live, once in globalReuse whatever the answer is, because strangers cause it and most
// installations have none.
func GlobalOf(cached, live View, namespace, name string) func(context.Context) (*pacv1alpha1.Repository, error) {
	asking := &singleflight.Group{}
	var last atomic.Pointer[globalAnswer]
	return func(ctx context.Context) (*pacv1alpha1.Repository, error) {
		if name == "" {
			return nil, nil
		}
		if global, err := cached.Repository(ctx, namespace, name); err == nil {
			return global, nil
		}
		answer, _, _ := asking.Do(name, func() (any, error) {
			if known := last.Load(); known != nil && time.Since(known.at) < globalReuse {
				return known, nil
			}
			// Others wait for it, too: it must not end with this delivery.
			global, err := live.Repository(context.WithoutCancel(ctx), namespace, name)
			if fault.Gone(err) {
				global, err = nil, nil
			}
			answer := &globalAnswer{repository: global, err: err, at: time.Now()}
			last.Store(answer)
			return answer, nil
		})
		known, ok := answer.(*globalAnswer)
		if !ok { // the function above returns nothing else
			return nil, fmt.Errorf("the global Repository: %T", answer)
		}
		return known.repository, known.err
	}
}

// globalAnswer is what the API server said of the global Repository.
type globalAnswer struct {
	repository *pacv1alpha1.Repository
	err        error
	at         time.Time
}
