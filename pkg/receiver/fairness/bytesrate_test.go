// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// The largest body of a namespace is accepted and the next one is refused. Other namespaces, and
// pushes of the same one, are not affected.
func TestRatesRefuseANamespaceAfterItsBurst(t *testing.T) {
	t.Parallel()
	var all Rates
	now := time.Unix(0, 0)
	const largest = 33 << 20
	if err := all.Charge(RateKey{Namespace: "busy"}, largest, now); err != nil {
		t.Fatalf("the first charge is refused: %v", err)
	}
	f := fault.Of(all.Charge(RateKey{Namespace: "busy"}, 1, now))
	if f == nil || f.Class != fault.Throttled || f.Reason != ReasonRate ||
		all.Check(RateKey{Namespace: "busy"}, now) == nil {
		t.Fatalf("the next charge returns %+v", f)
	}
	for _, other := range []RateKey{{Namespace: "quiet"}, {"busy", true}} {
		if err := all.Charge(other, largest, now); err != nil {
			t.Errorf("%+v is refused: %v", other, err)
		}
	}
	if now = now.Add((largest - payloadBurst) / payloadRate * time.Second); all.Check(RateKey{Namespace: "busy"},
		now) == nil {
		t.Errorf("accepted before the rate has made up for the charge")
	}
	if now = now.Add(time.Second); all.Check(RateKey{Namespace: "busy"}, now) != nil ||
		all.Charge(RateKey{Namespace: "busy"}, 1, now) != nil {
		t.Error("refused although the rate has made up for the charge")
	}
	if now.Sub(time.Unix(0, 0)) > f.RetryAfter {
		t.Errorf("Retry-After is %v, and it is accepted after %v", f.RetryAfter, now.Sub(time.Unix(0, 0)))
	}
}

// Bytes that were not written do not count, however often the delivery is tried.
func TestRatesRefundWhatWasNotWritten(t *testing.T) {
	t.Parallel()
	var all Rates
	for range 5 {
		if err := all.Charge(RateKey{Namespace: "team"}, payloadBurst, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		all.Refund(RateKey{Namespace: "team"}, payloadBurst)
	}
}

func TestRatesForgetTheOldestNamespace(t *testing.T) {
	t.Parallel()
	var all Rates
	now, oldest, newest := time.Unix(0, 0), RateKey{}, RateKey{Namespace: fmt.Sprint("team-", recent.DefaultMax)}
	for n := range recent.DefaultMax + 1 {
		key := RateKey{Namespace: fmt.Sprint("team-", n)}
		if n == 0 {
			oldest = key
		}
		if err := all.Charge(key, payloadBurst, now); err != nil {
			t.Fatal(err)
		}
	}
	if all.Check(oldest, now) != nil || all.Check(newest, now) == nil {
		t.Error("the oldest namespace is still limited, or the newest one is not")
	}
}
