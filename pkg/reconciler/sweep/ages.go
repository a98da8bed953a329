// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"maps"
	"slices"
	"time"
)

// ages counts stubs by the minute of their creation. So the oldest ones above a number are found
// without storing all: four days are 5,760 minutes, however many events there are.
type ages struct {
	keep      int
	total     int
	perMinute map[int64]int
	// limit is the oldest minute of which some stubs stay, and rest is how many stubs of that
	// minute do not. Both are set by cut.
	limit int64
	rest  int
	known bool
}

func minute(created time.Time) int64 { return created.Unix() / 60 }

func (a *ages) add(created time.Time) {
	a.total++
	a.perMinute[minute(created)]++
}

// excess returns the number of stubs above the number to keep.
func (a *ages) excess() int { return a.total - a.keep }

// cut sets limit and rest after all stubs are counted.
func (a *ages) cut() {
	if a.known {
		return
	}
	a.known = true
	a.rest = max(0, a.excess())
	for _, m := range slices.Sorted(maps.Keys(a.perMinute)) {
		a.limit = m
		if a.rest < a.perMinute[m] {
			return
		}
		a.rest -= a.perMinute[m]
	}
}

// above returns those that are above the number to keep, and rest after they are deleted.
func above[T any](a *ages, all []T, created func(*T) time.Time) (oldest []T, rest int) {
	a.cut()
	rest = a.rest
	for i := range all {
		m := minute(created(&all[i]))
		if m == a.limit && rest > 0 {
			rest--
			oldest = append(oldest, all[i])
		}
		if m < a.limit {
			oldest = append(oldest, all[i])
		}
	}
	return oldest, rest
}
