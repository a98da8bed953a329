// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

func TestTokenExpiresIsOfTheTokenThatWasUsed(t *testing.T) {
	r := newFixture(t)
	at := time.Unix(1_800_000_000, 0)
	r.expires = &at
	r.provide(func(own *pacv1alpha1.Repository) {
		own.Spec.GitProvider = &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "git"}}
	})
	r.store(secret("team", "git", map[string]string{"provider.token": "one"}))
	if name, got := r.begin("e", "own", "git.example").TokenExpires(); name.Name != "" || !got.IsZero() {
		t.Errorf("before the login: %s %s", name, got)
	}
	for _, service := range []string{"own", "app"} {
		s := r.begin("e", service, "git.example")
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		name, got := s.TokenExpires()
		if own := service == "own"; own != (name.String() == "team/git") || own != got.Equal(at) {
			t.Errorf("%s: %s %s", service, name, got)
		}
	}
	// A new token of the same Secret has no end until the service says one. Before the first call
	// nothing is known.
	r.store(secret("team", "git", map[string]string{"provider.token": "two"}))
	r.expires = nil
	for _, want := range []string{"", "git"} {
		s := r.begin("e", "own", "git.example")
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name, got := s.TokenExpires(); name.Name != want || !got.IsZero() {
			t.Errorf("a new token: %s %s, want %q", name, got, want)
		}
		r.expires = &time.Time{}
	}
}
