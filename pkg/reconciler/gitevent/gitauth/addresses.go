// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// addresses reads web addresses of the Git service with the event's credentials, and with those of
// the other repositories that the token of a run would reach. It finds these when the first address
// is read.
type addresses struct {
	scope      scope.Resolver
	a          *attempt.Attempt
	repository *pacv1alpha1.Repository
	client     *provider.Client
	known      bool
	others     []v1alpha1.Project
}

// Addresses returns what reads web addresses for an event of the repository's own code. The
// Repository is completed by the global one.
func (s Secrets) Addresses(
	a *attempt.Attempt,
	repository *pacv1alpha1.Repository,
	client *provider.Client,
) interface {
	FileAt(ctx context.Context, address string) ([]byte, error)
} {
	return &addresses{scope: s.scope, a: a, repository: repository, client: client}
}

// FileAt implements references.Addresses.
func (s *addresses) FileAt(ctx context.Context, address string) ([]byte, error) {
	if !s.known {
		others, _, err := s.scope.Others(ctx, scope.Request{
			Event: &s.a.Event.Spec, Repository: s.repository, Config: s.a.Config, Covered: s.client.Covered,
		})
		if err != nil {
			return nil, err
		}
		s.others, s.known = others, true
	}
	return s.client.FileAt(ctx, address, s.others...)
}
