// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// noFsync makes etcd answer a write before it is on the disk: the tests' data has to survive only
// their processes.
const noFsync = "--unsafe-no-fsync"

// Durable restarts etcd so that it answers a write when it is on the disk, as in production, and
// waits for the API server. Call it before a measurement, after the preparation.
func (c *Cluster) Durable(ctx context.Context) error {
	etcd := c.Part(Etcd)
	if err := etcd.Kill(); err != nil {
		return err
	}
	etcd.mu.Lock()
	etcd.args = slices.DeleteFunc(slices.Clone(etcd.args), func(arg string) bool { return arg == noFsync })
	etcd.mu.Unlock()
	if err := etcd.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := Poll(ctx, 50*time.Millisecond, func() error { return c.Part(APIServer).ready(ctx) }); err != nil {
		return fmt.Errorf("waiting for the API server after a restart of etcd: %w", err)
	}
	return nil
}
