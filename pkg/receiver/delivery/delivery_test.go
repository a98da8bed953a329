// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// service claims requests with its header, and accepts one secret.
type service struct {
	name, secret string
	verified     *int
}

func (s service) Claims(h http.Header) bool { return h.Get(s.name) != "" }

func (s service) Peek(http.Header, []byte) (provider.Origin, error) {
	return provider.Origin{Event: "push"}, errors.New("no repository")
}

func (s service) Verify(_ http.Header, _, secret []byte) error {
	*s.verified++
	if string(secret) != s.secret {
		return errors.New("mismatch")
	}
	return nil
}

func (s service) Decode(http.Header, []byte) (*v1alpha1.GitEventSpec, error) { return nil, nil }

func TestClaimantIsTheFirstProviderThatClaims(t *testing.T) {
	providers := []provider.Provider{
		{Webhook: service{name: "A"}}, {Webhook: service{name: "B"}}, {Webhook: service{name: "C"}},
	}
	header := http.Header{"B": {"1"}, "C": {"1"}}
	if got := delivery.Claimant(providers, header); got != &providers[1] {
		t.Errorf("claimed by %v, want B", got)
	}
	if got := delivery.Claimant(providers, http.Header{}); got != nil {
		t.Errorf("claimed by %v, want none", got)
	}
}

func TestClaimKeepsTheOriginOfAnError(t *testing.T) {
	c, err := delivery.Claim(&provider.Provider{Webhook: service{}}, nil, nil)
	if err == nil || c.Origin().Event != "push" {
		t.Errorf("%+v, %v; want the error and what could be read", c.Origin(), err)
	}
}

// While there is a previous secret, both are tried whichever matches: the time must not show it.
func TestMatchAlwaysTriesBothSecrets(t *testing.T) {
	for accepted, c := range map[string]struct {
		ok, previous bool
	}{"current": {true, false}, "previous": {true, true}, "other": {false, false}} {
		verified := 0
		p := &provider.Provider{Webhook: service{secret: accepted, verified: &verified}}
		claimed, _ := delivery.Claim(p, nil, nil)
		v, err := claimed.Match(secrets.Secret{Current: []byte("current"), Previous: []byte("previous")})
		if (err == nil) != c.ok || (v.PreviousKey() != "") != c.previous || verified != 2 {
			t.Errorf("%s: %v, previous %q, tried %d secrets, want both", accepted, err, v.PreviousKey(), verified)
		}
	}
}
