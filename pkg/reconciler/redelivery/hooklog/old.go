// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// maxOver is of how many deliveries it is remembered that they are too old: twice what one look
// reads.
const maxOver = 2000

// old is what a log knows of deliveries that are too old to be sent again.
type old struct {
	// over are those whose first attempt is so old that they might run twice, whatever attempts
	// there were since.
	over map[string]bool
	// unsure are those among them of which it is not known yet whether they have succeeded, with
	// the id of the oldest attempt.
	unsure map[string]int64
	// toTell are those that have not, and have to be told.
	toTell []missed
}

// grownOld notes that a delivery is not sent again, however often it was until now. If it is ours,
// the next read of the whole log decides whether it is given up.
func (l *log) grownOld(guid string, attempt int64, ours bool) {
	if l.over == nil || len(l.over) >= maxOver {
		l.over = map[string]bool{}
	}
	if l.unsure == nil || len(l.unsure) >= maxOver { // a service that answers a part only may go on for ever
		l.unsure = map[string]int64{}
	}
	if first, unsure := l.unsure[guid]; ours && (unsure || !l.over[guid]) {
		l.unsure[guid] = least(first, attempt)
	}
	l.over[guid] = true
}

// decide notes which of the old deliveries have to be told, when all attempts from an id on are
// read. Of one that is older than that it is not known whether it has succeeded: it is told only if
// it is known to be missed. Of many the newest are told, as many as are remembered: the next
// process would tell the others again.
func (l *log) decide(attempts []provider.Attempt, from int64) {
	succeeded := map[string]bool{}
	for i := range attempts {
		if attempts[i].Succeeded() {
			succeeded[attempts[i].GUID] = true
		}
	}
	for guid, first := range l.unsure {
		known := first >= from || slices.ContainsFunc(l.missed, func(m missed) bool { return m.guid == guid })
		if known && !succeeded[guid] && !l.done[guid] {
			l.toTell = append(l.toTell, missed{guid: guid, first: first})
		}
	}
	l.unsure = nil
	slices.SortFunc(l.toTell, func(a, b missed) int { return cmp.Compare(a.first, b.first) })
	l.toTell = l.toTell[max(0, len(l.toTell)-maxGivenUp):]
}
