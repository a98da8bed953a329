// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// payloadRate is how many bytes of EventPayloads a receiver writes in a second for one namespace, when it has done so for a
	// while: with four times as many, others waited four times as long at p99 (make hostile, finding 6). A push of 300 files takes
	// 20 KiB and no EventPayload.
	payloadRate = 256 << 10
	// payloadBurst is what it writes at once before that counts. What is begun is written, so that the largest body is taken.
	payloadBurst = 512 << 10
	// surelyLarge is a body that is neither decoded nor compressed while its namespace has used that up: few of that size fit into their
	// event. A copy of what is recorded is refused as well, because only a decoded body tells which record that would be. Nothing is lost
	// by that, and when it comes again later it is recognised. Of smaller bodies the record is looked for first.
	surelyLarge = 512 << 10
	// usuallyPacked is by how much a body is smaller at least once it is compressed: so much of one counts until that is known, and
	// those that come together and take little are not refused because of each other.
	usuallyPacked = 4
	// reasonRate is the reason of a delivery that is not recorded because of that.
	reasonRate = "NamespaceRate"
	// maxRates bounds the namespaces that are remembered. To forget them costs the API server a burst of each.
	maxRates = 10_000
)

// rateKey names one of the two rates of a namespace. What strangers may cause leaves the one of its pushes alone.
type rateKey struct {
	namespace string
	push      bool
}

func rateOf(spec *v1alpha1.GitEventSpec) rateKey {
	return rateKey{spec.Repository.Namespace, spec.Trigger == v1alpha1.TriggerPush}
}

// rates count what was written for namespaces. Each count falls by payloadRate a second. The zero value is ready.
type rates struct {
	mu sync.Mutex
	of map[rateKey]count
}

type count struct {
	bytes int64
	at    time.Time
}

// used is what still counts at a time.
func (c count) used(now time.Time) int64 {
	return max(0, c.bytes-int64(now.Sub(c.at).Seconds()*payloadRate))
}

// over returns a Throttled fault if a namespace has used up its burst.
func (r *rates) over(key rateKey, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free(key, now)
}

// take counts bytes that are about to be written. The error is as of over; nothing is counted then.
func (r *rates) take(key rateKey, bytes int64, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.free(key, now); err != nil {
		return err
	}
	if r.of == nil || len(r.of) >= maxRates {
		r.of = map[rateKey]count{}
	}
	r.of[key] = count{r.of[key].used(now) + bytes, now}
	return nil
}

// give takes back what was counted and not written; it is negative where more was written.
func (r *rates) give(key rateKey, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, found := r.of[key]; found {
		known.bytes = max(0, known.bytes-bytes)
		r.of[key] = known
	}
}

func (r *rates) free(key rateKey, now time.Time) error {
	used := r.of[key].used(now)
	if used < payloadBurst {
		return nil
	}
	again := time.Duration(used-payloadBurst)*time.Second/payloadRate + time.Second
	return fault.Throttledf(reasonRate, again, "large deliveries of Repositories in namespace %s have taken more than %d KiB of the API server, which %d KiB a second make up for",
		key.namespace, payloadBurst>>10, payloadRate>>10)
}
