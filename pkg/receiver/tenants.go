// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// tenants share the places for deliveries by the namespaces of their Repositories. While the API server is slow, one whose
// deliveries are many would hold all of them. The zero value is ready.
type tenants struct {
	mu sync.Mutex
	of map[string]*tenant
}

// tenant is a namespace of which a delivery is there.
type tenant struct {
	// recording has a place for each delivery that is recorded.
	recording slots
	// there are the deliveries that are recorded or wait for it.
	there int
}

// enter waits for at most slotWait for a namespace's turn to record. Without an error, leave must be called once. The error is
// Transient: the namespace has too many deliveries at once.
func (t *tenants) enter(ctx context.Context, namespace string) (leave func(), err error) {
	its := t.join(namespace)
	if its == nil {
		return nil, busy(namespace)
	}
	if !its.recording.take(ctx, func() {}) {
		t.part(namespace, its)
		return nil, busy(namespace)
	}
	return func() {
		its.recording.free()
		t.part(namespace, its)
	}, nil
}

func busy(namespace string) error {
	return fault.Transientf("NamespaceBusy", "%d deliveries of Repositories in namespace %s are handled at once", maxOfNamespace, namespace)
}

// join returns nil when the namespace has as many deliveries as it may.
func (t *tenants) join(namespace string) *tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	its := t.of[namespace]
	if its == nil {
		if t.of == nil {
			t.of = map[string]*tenant{}
		}
		its = &tenant{recording: make(slots, maxRecordings)}
		t.of[namespace] = its
	}
	if its.there == maxOfNamespace {
		return nil
	}
	its.there++
	return its
}

func (t *tenants) part(namespace string, its *tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if its.there--; its.there == 0 {
		delete(t.of, namespace)
	}
}
