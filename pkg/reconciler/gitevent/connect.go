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

// connect returns the authenticated view of the event's repository. A reconcile logs in once, whatever comes of it: the
// steps after one that could not are answered the same. Only a login that ran out of its step's time is tried again.
func (w *work) connect(ctx context.Context) (*provider.Client, error) {
	if w.client != nil || w.loginErr != nil {
		return w.client, w.loginErr
	}
	client, err := w.connectOnce(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.loginErr = err
		}
		return nil, err
	}
	w.client = client
	return client, nil
}

func (w *work) connectOnce(ctx context.Context) (*provider.Client, error) {
	spec := &w.event.Spec
	service, known := w.r.Providers[spec.Provider]
	if !known {
		return nil, fault.Operatorf("ProviderUnknown", "this version serves no Git service %q", spec.Provider)
	}
	if err := w.takeSlot(); err != nil {
		return nil, err
	}
	base, credentials, err := w.authenticate(ctx, service)
	if err != nil {
		return nil, err
	}
	client, err := service.Connect(ctx, base, spec.Project, credentials)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", spec.Host, err)
	}
	return &client, nil
}

// takeSlot takes one of the Git host's slots, which the reconcile has until it ends.
func (w *work) takeSlot() error {
	if w.release != nil {
		return nil
	}
	spec := &w.event.Spec
	release, free := w.r.slots.take(fmt.Sprintf("%s/%d", spec.Host, spec.InstallationID))
	if !free {
		return fault.Throttledf(fault.ReasonBusy, busyRetry, "waiting for other events of %s", spec.Host)
	}
	w.release = release
	return nil
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
