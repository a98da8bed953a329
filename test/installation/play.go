// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Play is what a command does on its own cluster.
type Play struct {
	// Name is part of the name of the temporary directory.
	Name string
	// Programs are built when they are the zero value.
	Programs Programs
	// Progress gets a line per step of the cluster's start; nil discards them.
	Progress io.Writer
	// Wired is that of clients.Options.
	Wired bool
}

// Run starts a cluster with the CustomResourceDefinitions of config/, calls act and takes the
// cluster down. When act fails the logs of all processes stay, and the error says where.
func (p Play) Run(ctx context.Context, act func(ctx context.Context, c *cluster.Cluster, built Programs) error) error {
	dir, err := os.MkdirTemp("", "plumbline-"+p.Name+"-")
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Progress: p.Progress, Wired: p.Wired})
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := Define(ctx, c); err != nil {
		return err
	}
	if p.Programs == (Programs{}) {
		if p.Programs, err = Build(ctx, dir); err != nil {
			return err
		}
	}
	if err := act(ctx, c, p.Programs); err != nil {
		return fmt.Errorf("%w\nthe logs are in %s", err, filepath.Join(dir, "cluster", "logs"))
	}
	c.Stop()
	return os.RemoveAll(dir)
}
