// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxVerdicts bounds the cache, some 150 bytes each. A run that is evicted is read again.
const maxVerdicts = 50_000

// verdicts caches final verdicts, so that each run is read once and not each time its pipeline is
// pruned. The zero value is empty. Safe for concurrent use.
type verdicts struct {
	mu   sync.Mutex
	runs map[types.UID]verdict
}

func (k *verdicts) of(run types.UID) (verdict, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, found := k.runs[run]
	return v, found
}

func (k *verdicts) put(run types.UID, v verdict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil || len(k.runs) >= maxVerdicts {
		k.runs = map[types.UID]verdict{}
	}
	k.runs[run] = v
}

func (k *verdicts) forget(run types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runs, run)
}
