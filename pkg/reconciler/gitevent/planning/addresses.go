// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// unscoped reads web addresses with the event's credentials only.
type unscoped struct{ client *provider.Client }

// FileAt implements references.Addresses.
func (u unscoped) FileAt(ctx context.Context, address string) ([]byte, error) {
	return u.client.FileAt(ctx, address)
}

// scoped also reads the other repositories that the token of a run would reach. It finds them when
// the first address is read.
type scoped struct {
	step       *Step
	a          *attempt.Attempt
	repository *pacv1alpha1.Repository // completed by the global one
	client     *provider.Client
	known      bool
	others     []v1alpha1.Project
}

// FileAt implements references.Addresses.
func (s *scoped) FileAt(ctx context.Context, address string) ([]byte, error) {
	if !s.known {
		others, _, err := s.step.Others.Others(ctx, scope.Request{
			Event: &s.a.Event.Spec, Repository: s.repository, Config: s.a.Config, Covered: s.client.Covered,
		})
		if err != nil {
			return nil, err
		}
		s.others, s.known = others, true
	}
	return s.client.FileAt(ctx, address, s.others...)
}
