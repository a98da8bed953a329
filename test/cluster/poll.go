// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"
)

// Poll tries again at every interval until try succeeds. When ctx ends first,
// the error carries both the end and the last failure.
func Poll(ctx context.Context, interval time.Duration, try func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
