// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// stage is what the page needs from outside.
type stage struct {
	cluster  *cluster.Cluster
	git      *forge.GitHub
	programs installation.Programs
	kubectl  string
}

var shared stage // set once before any test runs

func TestMain(m *testing.M) {
	if standIn := standIns[filepath.Base(os.Args[0])]; standIn != nil && os.Getenv(envCalls) != "" {
		os.Exit(standIn(os.Args[1:]))
	}
	os.Exit(cluster.Suite{Name: "docs", Limit: limit, Prepare: prepare}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) (err error) {
	shared = stage{cluster: c, git: forge.New(forge.Options{}), kubectl: filepath.Join(dir, "kubectl")}
	if err = shared.git.Start(); err != nil {
		return err
	}
	if shared.programs, err = installation.Build(ctx, dir); err != nil {
		return err
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "hack/tools/kubectl"),
		"-ldflags=-s -w", "-o", shared.kubectl, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building kubectl: %w\n%s", err, out)
	}
	return nil
}
