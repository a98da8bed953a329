// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
)

// verifyWebhook verifies a delivery with the secret of the Repository that it claims to be for. The
// Repository is looked up first: there is no other way to find the secret. So an unverified sender
// causes look-ups, and must not learn from the answer or its time whether there is a Repository of
// that URL: see unauthenticated.
func (h *Handler) verifyWebhook(ctx context.Context, c delivery.Claimed) (*verified, *answer) {
	canonical, err := v1alpha1.CanonicalURL(c.Origin().URL)
	if err != nil {
		return nil, ignored(reasonNoRepository, "the delivery names no repository")
	}
	repository, counted := h.Lookup.Known(ctx, canonical), false
	if repository == nil {
		found, byGroup, refused := h.lookUpLive(ctx, c, canonical)
		if refused != nil {
			return byGroup, refused
		}
		repository, counted = found, byGroup == nil
	}
	service, err := h.Services.Of(ctx, repository)
	if err != nil {
		return nil, unavailable("the Git service of the Repository is not known at the moment: send the delivery again later",
			err)
	}
	if service.Webhook.Name == "" {
		return nil, h.unauthenticated(counted, reasonNoWebhookSecret,
			"the Repository of "+canonical+" names no webhook secret: set git_provider.webhook_secret")
	}
	secret, err := h.Services.Secret(ctx, service.Webhook)
	if err != nil {
		return nil, secretUnavailable(err)
	}
	// It does not wait for a newer secret: the time would show that the project is onboarded.
	v, err := c.Verify(secret, false)
	switch {
	case fault.Is(err, fault.Transient):
		return nil, secretUnavailable(err)
	case err != nil:
		return nil, h.unauthenticated(counted, reasonUnauthenticated, canonical+": "+fault.Of(err).Message)
	}
	return &verified{v, &webhook{repository, service}}, nil
}

// unauthenticated answers a delivery that no secret verifies. Counted reports whether it was
// counted against the rate of unverified senders before. Past the rate the answer is 503 whatever
// was looked up, so that this shows nothing either.
func (h *Handler) unauthenticated(counted bool, reason, detail string) *answer {
	if !counted && !h.unverified.Allow() {
		return tooManyUnverified()
	}
	return unauthenticated(reason, detail)
}

// lookUpLive finds the Repository of a URL that the caches do not know. They suffice for a usual
// delivery, but the Repository may have been created a moment ago. For a sender that knows a secret
// of the group (byGroup), the read is a usual one. A read for an unverified sender counts against
// the rate of those.
func (h *Handler) lookUpLive(
	ctx context.Context, c delivery.Claimed, canonical string,
) (repository *pacv1alpha1.Repository, byGroup *verified, refused *answer) {
	byGroup, err := h.verifyWithGroup(ctx, c, canonical)
	if err != nil {
		return nil, nil, secretUnavailable(err)
	}
	find := h.Lookup.Find
	if byGroup == nil {
		if !h.unverified.Allow() {
			return nil, nil, tooManyUnverified()
		}
		find = h.Lookup.FindUnverified
	}
	repository, err = find(ctx, canonical)
	if err == nil {
		return repository, byGroup, nil
	}
	if f := fault.Of(err); byGroup == nil && (f.Class == fault.Ignored || f.Reason == fault.ReasonNotClaimedYet) {
		return nil, nil, h.unauthenticated(true, f.Reason, f.Message)
	}
	return nil, byGroup, notFound(err)
}
