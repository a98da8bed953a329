// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the scenarios of docs/codes.md: built binaries under their own ServiceAccounts,
// a real API server with a real Tekton, and a GitHub and a GitLab that remember every write.
package e2e

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/canary"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// suite is what all tests share: one cluster, the binaries and one App's key, which takes a second
// to generate.
type suite struct {
	cluster  *cluster.Cluster
	programs installation.Programs
	key      string
	pool     pool
	// secrets are those that any scenario has had so far.
	secrets canary.Secrets
}

var shared suite // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "e2e", Limit: 80 * time.Minute, Prepare: prepare, Audit: audit}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) error {
	if err := installation.Define(ctx, c); err != nil {
		return err
	}
	programs, err := installation.Build(ctx, dir)
	if err != nil {
		return err
	}
	shared.cluster, shared.programs, shared.pool.idle = c, programs, map[kind][]*pooled{}
	if err := startRunner(ctx, c.RESTConfig()); err != nil {
		return err
	}
	shared.key = forge.New(forge.Options{}).CreateApp(1, "key", "", "x").PrivateKeyPEM
	return watchSecrets(ctx, c, &shared.secrets)
}

// audit looks for secrets in all logs and, if all tests ran, for missing rights. Only both tiers
// together use all rights.
func audit(c *cluster.Cluster) error {
	if err := auditLogs(c); err != nil {
		return err
	}
	if run := flag.Lookup("test.run"); run == nil || run.Value.String() != "" {
		return nil
	}
	return checkRights(c.AuditLog(), !testing.Short())
}
