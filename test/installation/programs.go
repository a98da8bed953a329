// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/testcache"
)

// OfEnv is the environment variable with the path of another working tree. Its config/ is
// installed and its binaries are built instead of this one's, to record what a previous version
// writes.
const OfEnv = "PLUMBLINE_OF"

// root returns the working tree under test.
func root() (string, error) {
	if other := os.Getenv(OfEnv); other != "" {
		return other, nil
	}
	return cluster.Root()
}

// Build compiles the receiver and the controller of this working tree into dir.
func Build(ctx context.Context, dir string) (Programs, error) {
	if err := Compile(ctx, dir, "./cmd/receiver", "./cmd/controller"); err != nil {
		return Programs{}, err
	}
	return Programs{Receiver: filepath.Join(dir, "receiver"), Controller: filepath.Join(dir, "controller")}, nil
}

// Compile compiles commands of this working tree into dir: args are flags of go build and the
// commands' packages.
func Compile(ctx context.Context, dir string, args ...string) error {
	root, err := root()
	if err != nil {
		return err
	}
	packages := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if err := testcache.Packages(ctx, root, packages...); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go",
		append([]string{"build", "-o", dir + string(filepath.Separator)}, args...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
