// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
)

// verified is a delivery whose sender knows a webhook secret.
type verified struct {
	delivery.Verified
	// webhook is what the secret belongs to. It is nil for the App's secret, with which the
	// Repository is looked up once the delivery is decoded.
	webhook *webhook
}

// webhook is a Repository whose own webhook secret was used.
type webhook struct {
	repository *pacv1alpha1.Repository
	service    pacv1alpha1.Service
}

// verify is the step from claimed to verified. It may return both a value and an answer: the sender
// knows a secret, and the delivery is not processed.
func (h *Handler) verify(ctx context.Context, c delivery.Claimed) (*verified, *answer) {
	switch {
	case c.Origin().App:
		return h.verifyApp(ctx, c)
	case c.Provider().BaseURL != nil:
		return h.verifyWebhook(ctx, c)
	}
	return nil, ignored(reasonNotTheApp,
		"only deliveries of the GitHub App are served: install the App on the repository and remove this webhook")
}

// verifyApp verifies a delivery with the App's secret.
func (h *Handler) verifyApp(ctx context.Context, c delivery.Claimed) (*verified, *answer) {
	secret, err := h.Secret.Read(ctx)
	if err != nil {
		return nil, secretUnavailable(err)
	}
	v, err := c.Verify(secret, true)
	switch {
	case fault.Is(err, fault.Transient):
		return nil, secretUnavailable(err)
	case err != nil:
		return nil, appUnauthenticated()
	}
	return &verified{Verified: v}, nil
}
