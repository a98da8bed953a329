// SPDX-License-Identifier: Apache-2.0

package memory

import "context"

type reserveKey struct{}

// WithReserve returns a context for code that reads large answers. That code calls reserve with how
// many more bytes it needs, and stops if reserve returns an error. Several goroutines may call it.
func WithReserve(ctx context.Context, reserve func(bytes int) error) context.Context {
	return context.WithValue(ctx, reserveKey{}, reserve)
}

// ReserveOf returns the function of WithReserve; without one, everything is allowed.
func ReserveOf(ctx context.Context) func(bytes int) error {
	if reserve, given := ctx.Value(reserveKey{}).(func(int) error); given {
		return reserve
	}
	return func(int) error { return nil }
}
