// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// payloadRate is how many bytes of bodies a receiver has the API server write in a second for
	// one namespace, when it has done so for a while: with four times as many, others waited four
	// times as long at p99 (make hostile, finding 6). A push of 300 files takes 20 KiB and no
	// EventPayload.
	payloadRate = 256 << 10
	// payloadBurst is what it writes at once before that counts. What is begun is written, so that
	// the largest body is taken.
	payloadBurst = 512 << 10
	// SurelyLarge is a body that is neither decoded nor compressed while its namespace has used
	// that up: few of that size fit into their event. A copy of what is recorded is refused as
	// well, because only a decoded body tells which record that would be. Nothing is lost by that,
	// and when it comes again later it is recognised. Of smaller bodies the record is looked for
	// first.
	SurelyLarge = 512 << 10
	// UsuallyPacked is by how much a body is smaller at least once it is compressed: so much of one
	// counts until that is known, and those that come together and take little are not refused
	// because of each other.
	UsuallyPacked = 4
	// usualInEvent is how much of a body in its GitEvent does not count, in JSON. Nearly all bodies
	// take less, and the rest of the event takes as much. Of a larger one the rest counts: with all
	// of it a bot that opens ten merge requests with long descriptions met the rate.
	usualInEvent = 10 << 10
	// inEventWrites is how often a body in its GitEvent is written: with the event, and with each
	// status until the body is removed (docs/adr/0027).
	inEventWrites = 4
	// ReasonRate is the reason of a delivery that is not recorded because of that.
	ReasonRate = "NamespaceRate"
	// maxRates bounds the namespaces that are remembered. To forget them costs the API server a
	// burst of each.
	maxRates = 10_000
)

// Rate names one of the two rates of a namespace. What strangers may cause leaves the one of its
// pushes alone.
type Rate struct {
	Namespace string
	Push      bool
}

// RateOf is the rate that a delivery counts for.
func RateOf(spec *v1alpha1.GitEventSpec) Rate {
	return Rate{spec.Repository.Namespace, spec.Trigger == v1alpha1.TriggerPush}
}

// InEvent returns what a body counts that takes so many bytes of its GitEvent, in JSON.
func InEvent(bytes int64) int64 {
	return inEventWrites * max(0, bytes-usualInEvent)
}

// Rates count what was written for namespaces. Each count falls by payloadRate a second. The zero
// value is ready.
type Rates struct {
	mu sync.Mutex
	of map[Rate]count
}

type count struct {
	bytes int64
	at    time.Time
}

// used is what still counts at a time.
func (c count) used(now time.Time) int64 {
	return max(0, c.bytes-int64(now.Sub(c.at).Seconds()*payloadRate))
}

// Over returns a Throttled fault if a namespace has used up its burst.
func (r *Rates) Over(key Rate, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free(key, now)
}

// Take counts bytes that are about to be written. The error is as of Over; nothing is counted then.
func (r *Rates) Take(key Rate, bytes int64, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.free(key, now); err != nil {
		return err
	}
	if r.of == nil || len(r.of) >= maxRates {
		r.of = map[Rate]count{}
	}
	r.of[key] = count{r.of[key].used(now) + bytes, now}
	return nil
}

// Give takes back what was counted and not written; it is negative where more was written.
func (r *Rates) Give(key Rate, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, found := r.of[key]; found {
		known.bytes = max(0, known.bytes-bytes)
		r.of[key] = known
	}
}

func (r *Rates) free(key Rate, now time.Time) error {
	used := r.of[key].used(now)
	if used < payloadBurst {
		return nil
	}
	again := time.Duration(used-payloadBurst)*time.Second/payloadRate + time.Second
	return fault.Throttledf(
		ReasonRate,
		again,
		"large deliveries of Repositories in namespace %s have taken more than %d KiB of the API server, which %d KiB a second make up for",
		key.Namespace,
		payloadBurst>>10,
		payloadRate>>10,
	)
}
