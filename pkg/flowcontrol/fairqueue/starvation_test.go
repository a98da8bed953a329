// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"testing"
)

// Tenants that always have one queued event do not starve a tenant with several: a new queue does
// not count as older than one that was served before.
func TestTenantsWithOneEventEachDoNotStarveABacklog(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	visits := map[string]Request{}
	var begun []func()
	var whose []string
	arrive := func(namespace string) {
		v := w.visit(namespace, "github.com", 7)
		visits[v.Event] = v
		if release := w.begin(v); release != nil {
			begun, whose = append(begun, release), append(whose, namespace)
		}
	}
	const tenants = 40
	for n := range tenants {
		arrive(fmt.Sprint("one-", n))
	}
	for range 100 {
		arrive("backlog")
	}
	served, longest, last := map[string]int{}, 0, map[string]int{}
	const turns = 400
	for n := range turns {
		begun[0]()
		ended := whose[0]
		begun, whose = begun[1:], whose[1:]
		for _, event := range w.woken {
			namespace := visits[event].Namespace
			begun, whose = append(begun, w.begin(visits[event])), append(whose, namespace)
			longest = max(longest, n-last[namespace])
			served[namespace]++
			last[namespace] = n
		}
		w.woken = nil
		if ended != "backlog" {
			arrive(ended) // its next push
		}
	}
	if served["backlog"] < turns/(tenants+1)/2 {
		t.Errorf("of %d turns the backlog got %d beside %d tenants", turns, served["backlog"], tenants)
	}
	if longest > 3*tenants {
		t.Errorf("one of %d tenants waited for %d turns", tenants, longest)
	}
}
