// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// S5: however many namespaces send as much as they can, there is a place for one that has none.
func TestANamespaceLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	var all Places
	var leaves []func()
	for n := range 5 {
		loud, its := fmt.Sprint("loud-", n), 0
		for {
			leave, err := all.Enter(loud)
			if err != nil {
				if !fault.Is(err, fault.Transient) {
					t.Errorf("%s: %v", loud, err)
				}
				break
			}
			leaves = append(leaves, leave)
			its++
		}
		if want := MaxInFlight >> (n + 1); its != want {
			t.Errorf("%s gets %d places, want %d", loud, its, want)
		}
	}
	came := make(chan func())
	go func() {
		leave, err := all.Await(t.Context(), "loud-4", false)
		if err != nil {
			t.Errorf("a place that becomes free: %v", err)
			leave = func() {}
		}
		came <- leave
	}()
	leaves[len(leaves)-1]()
	leaves = append(leaves[:len(leaves)-1], <-came)
	quiet, err := all.Enter("quiet")
	if err != nil {
		t.Fatalf("a namespace that has no delivery here: %v", err)
	}
	quiet()
	leaves[0]()
	again, err := all.Enter("loud-0")
	if err == nil {
		t.Error("a namespace gets back the half that it had alone, beside four others")
		again()
	}
	for _, leave := range leaves[1:] {
		leave()
	}
	if len(all.of) != 0 || all.there != 0 || all.waiting != 0 {
		t.Errorf("%d places, %d namespaces and %d that wait are remembered after the last delivery", all.there, len(all.of), all.waiting)
	}
}
