// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"net/http"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// owned is a decoded delivery about the configured Git service, and the Repository that owns its
// URL.
type owned struct {
	delivery.Decoded
	repository *pacv1alpha1.Repository
}

// decode is the step from verified to decoded.
func (h *Handler) decode(ctx context.Context, v *verified) (*owned, *answer) {
	canonical, bad := v1alpha1.CanonicalURL(v.Origin().URL)
	if v.webhook != nil { // then the URL is valid: it is the Repository's
		return h.decodeWebhook(v, canonical)
	}
	return h.decodeApp(ctx, v, canonical, bad)
}

// decodeApp decodes before it looks the Repository up. Most deliveries of an App are events that
// are never acted on, which must not cost a read of the API server each.
func (h *Handler) decodeApp(ctx context.Context, v *verified, canonical string, badURL error) (*owned, *answer) {
	if refused := h.checkRate(ctx, v, canonical); refused != nil {
		return nil, refused
	}
	d, err := v.Decode()
	if err != nil {
		return nil, undecoded(err)
	}
	if badURL != nil {
		return nil, rejected(http.StatusBadRequest, reasonBadRepositoryURL, "the repository's URL: "+badURL.Error())
	}
	if refused := otherHost(d, h.BaseURL(v.Provider().Name), canonical); refused != nil {
		return nil, refused
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return nil, notFound(err)
	}
	if refused := h.servedByWebhook(ctx, v, repository); refused != nil {
		return nil, refused
	}
	return &owned{d, repository}, nil
}

// servedByWebhook refuses a delivery of the App for a Repository that names a token and a webhook
// secret: GitHub calls that webhook for the same event, which must not run twice (docs/adr/0069).
func (h *Handler) servedByWebhook(ctx context.Context, v *verified, repository *pacv1alpha1.Repository) *answer {
	if v.Provider().WithToken == nil || repository.Spec.GitProvider == nil {
		return nil
	}
	global, err := h.Services.GlobalRepository(ctx)
	if err != nil {
		return unavailable("the Git service of the Repository is not known at the moment: send the delivery again later", err)
	}
	// Settings that contradict each other serve no webhook; a condition reports them.
	service, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil || !service.HasWebhook() {
		return nil
	}
	return ignored(reasonServedByWebhook, "the Repository names a token and a webhook secret, so its webhook is served "+
		"and the GitHub App is not: remove git_provider.webhook_secret to have the App serve it")
}

// checkRate refuses a body before it is decoded if the rate of its namespace would refuse it in the
// end. Such a large body justifies the look-up of a Repository: most deliveries of an App that are
// not acted on are small.
func (h *Handler) checkRate(ctx context.Context, v *verified, canonical string) *answer {
	if len(v.Body()) <= fairness.RateCheckBytes || canonical == "" {
		return nil
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return nil // looked up again, and answered, if such events are acted on
	}
	if err := h.Recorder.CheckRate(repository.Namespace, v.Origin().Push, len(v.Body())); err != nil {
		return unrecorded(err)
	}
	return nil
}

func (h *Handler) decodeWebhook(v *verified, canonical string) (*owned, *answer) {
	repository, service := v.webhook.repository, v.webhook.service
	if err := h.Recorder.CheckRate(repository.Namespace, v.Origin().Push, len(v.Body())); err != nil {
		return nil, unrecorded(err)
	}
	d, err := v.Decode()
	if err != nil {
		return nil, undecoded(err)
	}
	baseURL := v.Provider().BaseURL(service.URL, service.RepositoryURL, d.Spec().Project)
	if refused := otherHost(d, baseURL, canonical); refused != nil {
		return nil, refused
	}
	return &owned{d, repository}, nil
}
