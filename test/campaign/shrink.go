// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Shrink returns the smallest part of a schedule that it has found to break what the whole broke. It tries halves, then quarters and
// all but a quarter, and so on, until no act can be left out or ctx ends. What breaks says of a part may be chance (docs/adr/0033):
// so a part that does not break anything says nothing of its acts, and each one that is returned has broken it.
func Shrink(ctx context.Context, acts []Act, breaks func(context.Context, []Act) bool) []Act {
	for parts := 2; len(acts) > 1 && ctx.Err() == nil; {
		parts = min(parts, len(acts))
		smaller, found := smallerOf(ctx, acts, parts, breaks)
		switch {
		case found:
			acts, parts = smaller, 2
		case parts == len(acts):
			return acts
		default:
			parts *= 2
		}
	}
	return acts
}

// smallerOf is one of so many parts that breaks it, or all but one.
func smallerOf(ctx context.Context, acts []Act, parts int, breaks func(context.Context, []Act) bool) ([]Act, bool) {
	tries := slices.Collect(slices.Chunk(acts, (len(acts)+parts-1)/parts))
	if all := tries; len(all) > 2 { // of two parts one is all but the other
		for n := range all {
			tries = append(tries, slices.Concat(slices.Concat(all[:n]...), slices.Concat(all[n+1:]...)))
		}
	}
	for _, try := range tries {
		if ctx.Err() != nil {
			break
		}
		if breaks(ctx, try) {
			return try, true
		}
	}
	return nil, false
}

// Compact is a part of a schedule without the times in which nothing happens: they are as long as before a rolling restart at most.
func Compact(acts []Act) []Act {
	out := slices.Clone(acts)
	var cut, end time.Duration
	for i := range out {
		out[i].At -= cut
		if idle := out[i].At - end; idle > calm {
			cut += idle - calm
			out[i].At = end + calm
		}
		end = max(end, out[i].At+out[i].Lasts)
	}
	return out
}

// String says what is done, and when.
func (a Act) String() string {
	what := fmt.Sprintf("%8.2fs  act %d: %s", a.At.Seconds(), a.N, a.Kind)
	if a.Target == "" {
		return what
	}
	return fmt.Sprintf("%s, %s, for %v", what, a.Target, a.Lasts.Round(10*time.Millisecond))
}
