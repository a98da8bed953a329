// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// Services finds the Git services of Repositories and the secrets of their webhooks.
type Services struct {
	// Global returns the Repository whose settings complete those of all others, nil if there
	// certainly is none.
	Global func(ctx context.Context) (*pacv1alpha1.Repository, error)
	*secrets.Copies
}

// GlobalRepository returns the global Repository, nil if there certainly is none.
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
		return service, fault.Operatorf(reasonBadRepository, "Repository %s/%s: %w",
			repository.Namespace, repository.Name, err)
	}
	return service, nil
}

// GlobalOf returns Services.Global: what the cache does not have is read live. That read is reused
// for globalReuse whatever its result is, because unverified senders cause it and most
// installations have no global Repository.
func GlobalOf(cached, live View, namespace, name string) func(context.Context) (*pacv1alpha1.Repository, error) {
	var mu sync.Mutex
	var last globalRead
	return func(ctx context.Context) (*pacv1alpha1.Repository, error) {
		if name == "" {
			return nil, nil
		}
		if global, err := cached.Repository(ctx, namespace, name); err == nil {
			return global, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last.at) < globalReuse {
			return last.repository, last.err
		}
		// Other deliveries wait for this read, too: it must not end with this delivery.
		global, err := live.Repository(context.WithoutCancel(ctx), namespace, name)
		if fault.Gone(err) {
			global, err = nil, nil
		}
		last = globalRead{repository: global, err: err, at: time.Now()}
		return global, err
	}
}

// globalRead is the result of reading the global Repository.
type globalRead struct {
	repository *pacv1alpha1.Repository
	err        error
	at         time.Time
}
