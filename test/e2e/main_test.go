// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the scenarios of spec/resilience.md: built binaries under their own ServiceAccounts, a real API
// server with a real Tekton, and a GitHub that remembers every write.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// suite is what all tests share: one cluster, the binaries, one App's key (a new one takes a second to make).
type suite struct {
	cluster  *cluster.Cluster
	programs installation.Programs
	key      string
}

var shared suite // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "plumbline-e2e-")
	if err != nil {
		return failed(err)
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Progress: os.Stdout})
	if err != nil {
		return failed(err)
	}
	defer c.Stop()
	if err := installation.Define(ctx, c); err != nil {
		return failed(err)
	}
	programs, err := installation.Build(ctx, dir)
	if err != nil {
		return failed(err)
	}
	shared = suite{cluster: c, programs: programs, key: forge.New(forge.Options{}).CreateApp(1, "key", "", "x").PrivateKeyPEM}
	code := m.Run()
	if run := flag.Lookup("test.run"); code == 0 && run != nil && run.Value.String() == "" { // every scenario ran
		if err := checkRights(c.AuditLog()); err != nil {
			code = failed(err)
		}
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of every process are kept in", filepath.Join(dir, "cluster", "logs"))
		return code
	}
	c.Stop()
	_ = os.RemoveAll(dir)
	return code
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "e2e:", err)
	return 1
}
