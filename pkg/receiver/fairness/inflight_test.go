// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// S5: however many namespaces send as much as they can, a delivery of a namespace that has none in
// flight is admitted.
func TestInFlightLeavesRoomForOtherNamespaces(t *testing.T) {
	t.Parallel()
	var all InFlight
	var releases []func()
	for n := range 5 {
		busy, got := fmt.Sprint("busy-", n), 0
		for {
			release, err := all.Acquire(busy)
			if err != nil {
				if !fault.Is(err, fault.Transient) {
					t.Errorf("%s: %v", busy, err)
				}
				break
			}
			releases = append(releases, release)
			got++
		}
		if want := MaxInFlight >> (n + 1); got != want {
			t.Errorf("%s has %d in flight, want %d", busy, got, want)
		}
	}
	admitted := make(chan func())
	go func() {
		release, err := all.Wait(t.Context(), "busy-4", false)
		if err != nil {
			t.Errorf("not admitted after a release: %v", err)
			release = func() {}
		}
		admitted <- release
	}()
	releases[len(releases)-1]()
	releases = append(releases[:len(releases)-1], <-admitted)
	quiet, err := all.Acquire("quiet")
	if err != nil {
		t.Fatalf("a namespace without a delivery in flight: %v", err)
	}
	quiet()
	releases[0]()
	again, err := all.Acquire("busy-0")
	if err == nil {
		t.Error("a namespace gets back the half that it had alone, next to four others")
		again()
	}
	for _, release := range releases[1:] {
		release()
	}
	if len(all.byNamespace) != 0 || all.total != 0 || all.waiting != 0 {
		t.Errorf("%d in flight, %d namespaces and %d waiting after the last release, want none", all.total,
			len(all.byNamespace), all.waiting)
	}
}
