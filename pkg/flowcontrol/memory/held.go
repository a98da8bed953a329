// SPDX-License-Identifier: Apache-2.0

package memory

import "context"

type heldKey struct{}

// Held returns a context for what reads large things of others: hold is told how many more bytes it
// takes, and returns an error when there is no room for them. It may be called by several
// goroutines.
func Held(ctx context.Context, hold func(bytes int) error) context.Context {
	return context.WithValue(ctx, heldKey{}, hold)
}

// HoldOf returns what a context was given; without anything there is room for all.
func HoldOf(ctx context.Context) func(bytes int) error {
	if hold, given := ctx.Value(heldKey{}).(func(int) error); given {
		return hold
	}
	return func(int) error { return nil }
}
