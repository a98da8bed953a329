// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// maxExpired is how many deliveries are remembered that are too old: twice what one read takes.
const maxExpired = 2000

// expired is what is known of the deliveries that are too old to be resent.
type expired struct {
	// over are those whose first attempt is so old that they might run twice, whatever attempts
	// there were since.
	over map[string]bool
	// unsure are those among them that may have succeeded, with the id of the oldest attempt.
	unsure map[string]int64
	// toReport are those that have not, and whose owners get an Event.
	toReport []redelivery.Delivery
}

// expire records that a delivery is not resent any more. If it is ours, the next read of the whole
// log decides whether it is given up.
func (w *webhook) expire(guid string, attempt int64, ours bool) {
	if w.over == nil || len(w.over) >= maxExpired {
		w.over = map[string]bool{}
	}
	if w.unsure == nil || len(w.unsure) >= maxExpired { // a service may never show the whole log
		w.unsure = map[string]int64{}
	}
	if first, unsure := w.unsure[guid]; ours && (unsure || !w.over[guid]) {
		w.unsure[guid] = least(first, attempt)
	}
	w.over[guid] = true
}

// decide fills toReport when all attempts from an id on are read. An older delivery may have
// succeeded unseen: it is reported only if it is known to be undelivered. Of many the newest are
// reported, as many as can be stored: the next process would report the others again.
func (w *webhook) decide(attempts []provider.Attempt, from int64) {
	succeeded := map[string]bool{}
	for i := range attempts {
		if attempts[i].Succeeded() {
			succeeded[attempts[i].GUID] = true
		}
	}
	for guid, first := range w.unsure {
		if (first >= from || w.misses(guid)) && !succeeded[guid] && !w.done[guid] {
			w.toReport = append(w.toReport, redelivery.Delivery{GUID: guid, FirstID: first})
		}
	}
	w.unsure = nil
	slices.SortFunc(w.toReport, func(a, b redelivery.Delivery) int { return cmp.Compare(a.FirstID, b.FirstID) })
	w.toReport = w.toReport[max(0, len(w.toReport)-maxGivenUp):]
}
