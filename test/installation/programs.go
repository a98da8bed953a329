// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Build compiles the receiver and the controller of this working tree into dir.
func Build(ctx context.Context, dir string) (Programs, error) {
	root, err := cluster.Root()
	if err != nil {
		return Programs{}, err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cmd/receiver", "./cmd/controller")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("building the receiver and the controller: %w\n%s", err, out)
	}
	return Programs{Receiver: filepath.Join(dir, "receiver"), Controller: filepath.Join(dir, "controller")}, nil
}
