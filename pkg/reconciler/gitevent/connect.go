// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// connect returns the authenticated view of the event's repository, once a reconcile. It holds one of the Git host's
// slots until the reconcile ends.
func (w *work) connect(ctx context.Context) (*provider.Client, error) {
	if w.client != nil {
		return w.client, nil
	}
	spec := &w.event.Spec
	service, known := w.r.Providers[spec.Provider]
	if !known {
		return nil, fault.Operatorf("ProviderUnknown", "this version serves no Git service %q", spec.Provider)
	}
	release, free := w.r.slots.take(fmt.Sprintf("%s/%d", spec.Host, spec.InstallationID))
	if !free {
		return nil, fault.Throttledf(fault.ReasonBusy, busyRetry, "waiting for other events of %s", spec.Host)
	}
	w.release = release
	base, credentials, err := w.authenticate(ctx, service)
	if err != nil {
		return nil, err
	}
	client, err := service.Connect(ctx, base, spec.Project, credentials)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", spec.Host, err)
	}
	w.client = &client
	return w.client, nil
}

// busyRetry is how soon an event that found its Git host's slots taken tries again.
const busyRetry = time.Second

// slots gives each Git host and installation at most a share of the workers, so that one that hangs cannot hold them
// all (B15). It is advice: losing it costs time, never truth.
type slots struct {
	mu    sync.Mutex
	limit int
	taken map[string]int
}

func newSlots(limit int) *slots {
	return &slots{limit: limit, taken: map[string]int{}}
}

// take returns the function that gives the slot back, or false when the key has none left.
func (s *slots) take(key string) (func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[key] >= s.limit {
		return nil, false
	}
	s.taken[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[key]--; s.taken[key] <= 0 {
			delete(s.taken, key)
		}
	}, true
}
