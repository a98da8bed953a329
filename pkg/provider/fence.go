// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

type fenceKey struct{}

// Fenced returns a context whose writes call fence right before they are sent, after all waits for
// limits and tokens. A process that was paused in the meantime must not send what another process
// has taken over. An error of fence becomes the write's error.
func Fenced(ctx context.Context, fence func() error) context.Context {
	return context.WithValue(ctx, fenceKey{}, fence)
}

// Fence reports an error if a write must not be sent.
func Fence(ctx context.Context) error {
	if fence, found := ctx.Value(fenceKey{}).(func() error); found {
		return fence()
	}
	return nil
}
