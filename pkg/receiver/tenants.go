// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// tenants share the places for deliveries by the namespaces of their Repositories: while the API server is slow, one whose
// deliveries are many would hold all of them. A namespace may hold as many as are free, so alone it gets half of them, a second
// one a quarter, and there is always room for one that has none. The zero value is ready.
type tenants struct {
	mu    sync.Mutex
	of    map[string]int // deliveries that are there, by namespace
	there int            // of all
}

// enter takes a place for a verified delivery. Without an error, leave must be called once. The error is Transient: the
// namespace has too many deliveries at once.
func (t *tenants) enter(namespace string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if its := t.of[namespace]; its >= maxInFlight-t.there {
		return nil, fault.Transientf("NamespaceBusy", "%d deliveries of Repositories in namespace %s are handled, and %d of others", its, namespace, t.there-its)
	}
	if t.of == nil {
		t.of = map[string]int{}
	}
	t.of[namespace]++
	t.there++
	return func() { t.leave(namespace) }, nil
}

func (t *tenants) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.there--
	if t.of[namespace]--; t.of[namespace] == 0 {
		delete(t.of, namespace)
	}
}
