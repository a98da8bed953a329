// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// S5: a namespace whose deliveries fill its places leaves the last quarter of them all to others, and gets its own back.
func TestANamespaceLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	var all tenants
	gone, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits
	var leaves []func()
	for n := range maxRecordings {
		leave, err := all.enter(t.Context(), "loud")
		if err != nil {
			t.Fatalf("delivery %d: %v", n+1, err)
		}
		leaves = append(leaves, leave)
	}
	if _, err := all.enter(gone, "loud"); !fault.Is(err, fault.Transient) {
		t.Errorf("one more is let in: %v", err)
	}
	other, err := all.enter(t.Context(), "other")
	if err != nil {
		t.Errorf("another namespace: %v", err)
	}
	all.of["loud"].there = maxOfNamespace // the others wait
	if its := all.join("loud"); its != nil {
		t.Errorf("a namespace with %d deliveries gets another place", maxOfNamespace)
	}
	all.of["loud"].there = maxRecordings
	leaves[0]()
	again, err := all.enter(t.Context(), "loud")
	if err != nil {
		t.Fatalf("a place that was given back: %v", err)
	}
	again()
	other()
	for _, leave := range leaves[1:] {
		leave()
	}
	if len(all.of) != 0 {
		t.Errorf("%d namespaces are remembered after their last delivery", len(all.of))
	}
}
