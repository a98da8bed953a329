// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The largest body of a namespace is taken, what comes right after it is not, and others are not
// concerned.
func TestLargeDeliveriesOfANamespaceHaveARate(t *testing.T) {
	t.Parallel()
	var all Rates
	now := time.Unix(0, 0)
	const largest = 33 << 20
	if err := all.Take(Rate{Namespace: "loud"}, largest, now); err != nil {
		t.Fatalf("the first one is refused: %v", err)
	}
	f := fault.Of(all.Take(Rate{Namespace: "loud"}, 1, now))
	if f == nil || f.Class != fault.Throttled || f.Reason != ReasonRate || all.Over(Rate{Namespace: "loud"}, now) == nil {
		t.Fatalf("the next one is answered %+v", f)
	}
	for _, other := range []Rate{{Namespace: "quiet"}, {"loud", true}} {
		if err := all.Take(other, largest, now); err != nil {
			t.Errorf("another namespace, or its own pushes, are refused: %v", err)
		}
	}
	if now = now.Add((largest - payloadBurst) / payloadRate * time.Second); all.Over(Rate{Namespace: "loud"}, now) == nil {
		t.Errorf("it is taken again before the rate has made up for what was taken")
	}
	if now = now.Add(time.Second); all.Over(Rate{Namespace: "loud"}, now) != nil || all.Take(Rate{Namespace: "loud"}, 1, now) != nil {
		t.Error("it is not taken again when the rate has made up for what was taken")
	}
	if now.Sub(time.Unix(0, 0)) > f.RetryAfter {
		t.Errorf("it was told to come again after %v, and is taken after %v", f.RetryAfter, now.Sub(time.Unix(0, 0)))
	}
}

// What was not written does not count, however often it is tried.
func TestARateIsOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	var all Rates
	for range 5 {
		if err := all.Take(Rate{Namespace: "team"}, payloadBurst, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		all.Give(Rate{Namespace: "team"}, payloadBurst)
	}
}

func TestRatesForgetRatherThanGrow(t *testing.T) {
	t.Parallel()
	var all Rates
	for n := range maxRates + 5 {
		if err := all.Take(Rate{Namespace: fmt.Sprint("team-", n)}, payloadBurst, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.of) > maxRates {
		t.Errorf("%d namespaces are remembered, want at most %d", len(all.of), maxRates)
	}
}
