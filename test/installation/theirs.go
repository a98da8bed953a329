// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TheirDefinition returns the CustomResourceDefinition of Repositories as Pipelines-as-Code's
// module has it. The module is downloaded if it is not there.
func TheirDefinition(ctx context.Context) ([]byte, error) {
	const module = "github.com/openshift-pipelines/pipelines-as-code"
	root, err := root()
	if err != nil {
		return nil, err
	}
	var folder string
	for _, args := range [][]string{{"mod", "download", module}, {"list", "-m", "-f", "{{.Dir}}", module}} {
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir = filepath.Join(root, "test", "oracle", "pac")
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
		}
		folder = strings.TrimSpace(string(out))
	}
	return os.ReadFile(filepath.Join(folder, "config", "300-repositories.yaml"))
}
