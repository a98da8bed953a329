// SPDX-License-Identifier: Apache-2.0

// Package roundrobin orders values so that their owners take turns.
package roundrobin

import (
	"cmp"
	"slices"
)

// Sort puts the first value of each owner before the second ones, and so on. Otherwise the order
// stays.
func Sort[T any, K comparable](all []T, owner func(T) K) {
	type ranked struct {
		value T
		rank  int // among those of its owner
	}
	ranks, order := map[K]int{}, make([]ranked, 0, len(all))
	for _, value := range all {
		order = append(order, ranked{value, ranks[owner(value)]})
		ranks[owner(value)]++
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for i := range order {
		all[i] = order[i].value
	}
}
