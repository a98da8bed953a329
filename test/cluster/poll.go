// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"
)

// Poll tries again at every interval until try succeeds, and less often the longer it takes: the
// pause is at least a twentieth of the time that has passed. When ctx ends first, the error carries
// both the end and the last failure.
func Poll(ctx context.Context, interval time.Duration, try func() error) error {
	for began := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-time.After(max(interval, time.Since(began)/20)):
		}
	}
}
