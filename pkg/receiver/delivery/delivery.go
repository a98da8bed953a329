// SPDX-License-Identifier: Apache-2.0

// Package delivery is a webhook delivery on its way through the receiver, as one value for each
// step: Claimed, Verified, Decoded. Only the step before it can make a value, so a function that
// takes one knows what was checked.
package delivery

import (
	"net/http"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// contents are what each step knows of a delivery.
type contents struct {
	provider *provider.Provider
	header   http.Header
	body     []byte
	origin   provider.Origin
}

// Provider is the Git service that claims the delivery.
func (c contents) Provider() *provider.Provider { return c.provider }

// Origin is what the delivery says about itself.
func (c contents) Origin() provider.Origin { return c.origin }

// Body is the whole body.
func (c contents) Body() []byte { return c.body }

// Claimant returns the first provider that claims a request by its headers, nil if none does.
func Claimant(providers []provider.Provider, header http.Header) *provider.Provider {
	for i := range providers {
		if providers[i].Webhook.Claims(header) {
			return &providers[i]
		}
	}
	return nil
}

// Claimed is a delivery that a provider claims. Nothing it says is proved.
type Claimed struct{ contents }

// Claim reads what a delivery says about itself. With an error, Origin is what could be read.
func Claim(p *provider.Provider, header http.Header, body []byte) (Claimed, error) {
	c := contents{provider: p, header: header, body: body}
	var err error
	fairness.Compute(body, func() { c.origin, err = p.Webhook.Peek(header, body) })
	if p.WithToken != nil && !c.origin.App {
		c.provider = p.WithToken
	}
	return Claimed{c}, err
}

// Verified is a delivery whose sender knows a webhook secret.
type Verified struct {
	contents
	previousKey string
}

// PreviousKey says where the previous webhook secret is, if the delivery was verified with that
// one.
func (v Verified) PreviousKey() string { return v.previousKey }

// Verify checks the delivery with a secret. It may have been signed after that secret was copied,
// so on a mismatch Verify requests a newer copy, and with wait tries the newer copy as well. The
// error is Transient if the copy could not be requested: that says nothing of the delivery.
func (c Claimed) Verify(secret secrets.Secret, wait bool) (Verified, error) {
	v, mismatch := c.Match(secret)
	if mismatch == nil {
		return v, nil
	}
	newer, err := secret.Newer(wait)
	if err != nil {
		return Verified{}, err
	}
	if newer.Current == nil {
		return Verified{}, mismatch
	}
	return c.Match(newer)
}

// Match checks the delivery with a secret as it is. While there is a previous secret, both are
// always tried: the time does not show which of them matches.
func (c Claimed) Match(secret secrets.Secret) (Verified, error) {
	mismatch := c.provider.Webhook.Verify(c.header, c.body, secret.Current)
	if len(secret.Previous) > 0 {
		previous := c.provider.Webhook.Verify(c.header, c.body, secret.Previous)
		if mismatch != nil && previous == nil {
			return Verified{c.contents, secret.PreviousKey()}, nil
		}
	}
	if mismatch != nil {
		return Verified{}, mismatch
	}
	return Verified{contents: c.contents}, nil
}

// Decoded is a verified delivery whose event is known.
type Decoded struct {
	contents
	spec *v1alpha1.GitEventSpec
}

// Decode reads the event. An event that is never acted on is an Ignored fault.
func (v Verified) Decode() (Decoded, error) {
	d := Decoded{contents: v.contents}
	var err error
	fairness.Compute(v.body, func() { d.spec, err = v.provider.Webhook.Decode(v.header, v.body) })
	return d, err
}

// Spec is the event without Repository, Payload and ReceivedAt.
func (d Decoded) Spec() *v1alpha1.GitEventSpec { return d.spec }
