// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Build compiles the receiver and the controller of this working tree into dir.
func Build(ctx context.Context, dir string) (Programs, error) {
	if err := Compile(ctx, dir, "./cmd/receiver", "./cmd/controller"); err != nil {
		return Programs{}, err
	}
	return Programs{Receiver: filepath.Join(dir, "receiver"), Controller: filepath.Join(dir, "controller")}, nil
}

// Compile compiles commands of this working tree into dir: args are flags of go build and the commands' packages.
func Compile(ctx context.Context, dir string, args ...string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, args...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
