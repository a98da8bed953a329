// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modulePath is the module whose go.mod marks the root of the repository.
const modulePath = "github.com/plumbline-ci/plumbline"

// binariesDir holds one Go module per group of binaries, below the repository root.
const binariesDir = "test/cluster/binaries"

// Root finds the repository that contains the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		if isOurs(data) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of %s in the working directory or above it", modulePath)
		}
		dir = parent
	}
}

// isOurs reports whether a go.mod declares exactly our module, not one of the modules below it.
func isOurs(goMod []byte) bool {
	for line := range bytes.Lines(goMod) {
		if name, ok := bytes.CutPrefix(line, []byte("module ")); ok {
			return string(bytes.TrimSpace(name)) == modulePath
		}
	}
	return false
}

// moduleDir is the folder of a dependency's sources in the module cache.
// The dependency is downloaded when it is not there yet.
func moduleDir(ctx context.Context, root, group, module string) (string, error) {
	where := filepath.Join(root, binariesDir, group)
	download := exec.CommandContext(ctx, "go", "mod", "download", module)
	download.Dir = where
	if out, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("downloading %s: %w: %s", module, err, bytes.TrimSpace(out))
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = where
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("locating %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("locating %s: it has no folder in the module cache", module)
	}
	return dir, nil
}
