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

// Compile compiles commands of this working tree, named by their packages, into dir.
func Compile(ctx context.Context, dir string, packages ...string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(packages, " and "), err, out)
	}
	return nil
}
