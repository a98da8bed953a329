// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// payloadRate is how many bytes of bodies a receiver writes to the API server in a second for
	// one namespace, on average. With four times as many, the deliveries of other tenants took four
	// times as long at p99 (measured by make hostile). A push of 300 files takes 20 KiB and no
	// EventPayload.
	payloadRate = 256 << 10
	// payloadBurst is how much a namespace may write at once before the rate counts. A body is
	// written as a whole, even if it exceeds the burst: the largest body is accepted.
	payloadBurst = 512 << 10
	// RateCheckBytes is the size over which a body is checked against the rate before it is decoded
	// and compressed: few bodies of that size fit into their event. Such a check also refuses a
	// copy of a recorded delivery, because only a decoded body says which record that would be.
	// Nothing is lost: a redelivery is recognised later. For a smaller body the receiver first
	// looks for its record.
	RateCheckBytes = 512 << 10
	// MinCompression is by how much a body shrinks at least when it is compressed. Until a body is
	// compressed it counts for its size divided by this, so that bodies that arrive together and
	// take little are not refused because of each other.
	MinCompression = 4
	// freeInEvent is how many bytes of a body in its GitEvent do not count, in JSON. Nearly all
	// bodies take less, and the rest of the event takes as much. When all bytes counted, a bot that
	// opened ten merge requests with long descriptions exceeded the rate.
	freeInEvent = 10 << 10
	// writesInEvent is how often a body in its GitEvent is written: with the event, and with each
	// status until the body is removed (docs/adr/0027).
	writesInEvent = 4
	// ReasonRate is the reason for a delivery that is refused because of the rate.
	ReasonRate = "NamespaceRate"
)

// RateKey names one of the two rates of a namespace. Pushes have their own, which untrusted users
// cannot use up.
type RateKey struct {
	Namespace string
	Push      bool
}

// RateKeyOf returns the rate that a delivery counts for.
func RateKeyOf(spec *v1alpha1.GitEventSpec) RateKey {
	return RateKey{spec.Repository.Namespace, spec.Trigger == v1alpha1.TriggerPush}
}

// InEvent returns what a body counts that takes so many bytes of its GitEvent, in JSON.
func InEvent(bytes int64) int64 {
	return writesInEvent * max(0, bytes-freeInEvent)
}

// Rates limit how many bytes are written for namespaces in a second. x/time/rate does not fit: one
// body may cost more than the burst, and what was not written is refunded. The zero value is ready.
//
// Only the namespaces that were charged last are in memory. One that was forgotten may write one
// more burst.
type Rates struct{ charged recent.Map[RateKey, usage] }

// usage is how many bytes counted at a time. It falls by payloadRate a second.
type usage struct {
	bytes int64
	at    time.Time
}

func (u usage) now(now time.Time) int64 {
	return max(0, u.bytes-int64(now.Sub(u.at).Seconds()*payloadRate))
}

// check returns a Throttled fault if the burst is exhausted.
func (u usage) check(key RateKey, now time.Time) error {
	used := u.now(now)
	if used < payloadBurst {
		return nil
	}
	again := time.Duration(used-payloadBurst)*time.Second/payloadRate + time.Second
	return fault.Throttledf(ReasonRate, again,
		"large deliveries for Repositories of namespace %s have exceeded the limit: %d KiB at once, then %d KiB a second",
		key.Namespace, payloadBurst>>10, payloadRate>>10)
}

// Check returns a Throttled fault if a namespace has exhausted its burst.
func (r *Rates) Check(key RateKey, now time.Time) error {
	used, _ := r.charged.Get(key)
	return used.check(key, now)
}

// Charge counts bytes that are about to be written. If Check fails, it returns that error and
// counts nothing.
func (r *Rates) Charge(key RateKey, bytes int64, now time.Time) (err error) {
	r.charged.Update(key, func(used usage, found bool) (usage, bool) {
		if err = used.check(key, now); err != nil {
			return used, found
		}
		return usage{used.now(now) + bytes, now}, true
	})
	return err
}

// Refund corrects a charge by the bytes that were not written. They are negative when more was
// written.
func (r *Rates) Refund(key RateKey, bytes int64) {
	r.charged.Update(key, func(used usage, found bool) (usage, bool) {
		used.bytes = max(0, used.bytes-bytes)
		return used, found
	})
}
