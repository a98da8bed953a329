// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

type fenceKey struct{}

// Fenced returns a context whose writes are asked for once more right before they are sent, when
// they have waited for their turn and for a token: a process that was stopped meanwhile must not
// send what another has taken over. An error is the write's.
func Fenced(ctx context.Context, fence func() error) context.Context {
	return context.WithValue(ctx, fenceKey{}, fence)
}

// Fence asks whether a write may be sent.
func Fence(ctx context.Context) error {
	if fence, found := ctx.Value(fenceKey{}).(func() error); found {
		return fence()
	}
	return nil
}
