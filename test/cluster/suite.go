// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/testcache"
)

// Suite is a package of tests that share one cluster.
type Suite struct {
	// Name is in front of errors, and part of the name of the temporary directory.
	Name string
	// Limit bounds the start of the cluster and Prepare, and what they have started.
	Limit time.Duration
	// Wired is that of Options.
	Wired bool
	// Prepare is called once before the tests; dir is a directory for what it makes.
	Prepare func(ctx context.Context, c *Cluster, dir string) error
	// Audit is called after the tests if all of them passed; nil is nothing to look at.
	Audit func(c *Cluster) error
}

// Run is what a TestMain exits with. What processes have logged is kept if something failed.
func (s Suite) Run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), s.Limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "plumbline-"+s.Name+"-")
	if err != nil {
		return s.failed(err)
	}
	c, err := Start(ctx, Options{Dir: filepath.Join(dir, "cluster"), Progress: os.Stdout, Wired: s.Wired})
	if err != nil {
		return s.failed(err)
	}
	defer c.Stop()
	if err := s.Prepare(ctx, c, dir); err != nil {
		return s.failed(err)
	}
	code := m.Run()
	if code == 0 && s.Audit != nil {
		if err := s.Audit(c); err != nil {
			code = s.failed(err)
		}
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of every process are kept in", filepath.Join(dir, "cluster", "logs"))
		return code
	}
	c.Stop()
	_ = os.RemoveAll(dir)
	if err := testcache.Finish(); err != nil {
		return s.failed(err)
	}
	return code
}

func (s Suite) failed(err error) int {
	fmt.Fprintln(os.Stderr, s.Name+":", err)
	return 1
}
