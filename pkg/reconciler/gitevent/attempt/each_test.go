// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestEachCallsUntilAnErrorIsMarked(t *testing.T) {
	t.Parallel()
	failed, closed, late := errors.New("failed"), errors.New("closed"), errors.New("no time")
	for name, test := range map[string]struct {
		fails map[int]error // by item
		allow int           // how many items there is time for
		want  []error
		calls int
	}{
		"all succeed":                {nil, 9, []error{nil, nil, nil}, 3},
		"one fails, others go on":    {map[int]error{1: failed}, 9, []error{failed, nil, nil}, 3},
		"a marked error ends it":     {map[int]error{1: failed, 2: Stop(closed)}, 9, []error{failed, closed}, 2},
		"no time for the last":       {map[int]error{1: failed}, 2, []error{failed, nil, late}, 2},
		"no time for any":            {nil, 0, []error{late}, 0},
		"it stops before no time is": {map[int]error{2: Stop(closed)}, 2, []error{nil, closed}, 2},
	} {
		allowed, calls := 0, 0
		proceed := func(context.Context) error {
			if allowed++; allowed > test.allow {
				return late
			}
			return nil
		}
		got := Each(t.Context(), []int{1, 2, 3}, proceed, func(_ context.Context, item int) error {
			calls++
			return test.fails[item]
		})
		if !slices.Equal(got, test.want) || calls != test.calls {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, got, calls, test.want, test.calls)
		}
	}
}
