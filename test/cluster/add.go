// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"
)

// Process describes a process that is not one of the cluster's own parts.
type Process struct {
	// Name is also the name of its log.
	Name string
	Path string
	Args []string
	// Env is added to PATH and HOME; nothing else is inherited.
	Env []string
	// Ready returns nil when the process can do its work.
	Ready func(ctx context.Context) error
}

// Add makes a Part of another process, not started yet. It ends with the cluster at the latest.
func (c *Cluster) Add(p Process) *Part {
	return &Part{
		name: p.Name, path: p.Path, args: p.Args, env: p.Env, ready: p.Ready, spawn: c.spawn,
		log: filepath.Join(c.dir, "logs", p.Name+".log"),
	}
}

// FreePort reserves a loopback port until the cluster stops.
func (c *Cluster) FreePort() (int, error) {
	c.portsMu.Lock()
	defer c.portsMu.Unlock()
	return c.ports.take()
}
