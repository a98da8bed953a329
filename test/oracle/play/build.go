// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

const (
	pacModule  = "github.com/openshift-pipelines/pipelines-as-code"
	controller = "pipelines-as-code-controller"
	watcher    = "pipelines-as-code-watcher"
)

// original is Pipelines-as-Code, built.
type original struct {
	bin    string // the folder of its binaries
	config string // the folder of the manifests that its release ships
	// settings are keys of its ConfigMap without their default values.
	settings map[string]string
}

// buildOriginal builds the controller and the watcher of the release in pac/go.mod beside the
// binaries of the test cluster. What is there already and is as it would be is left.
func buildOriginal(ctx context.Context, progress io.Writer) (original, error) {
	root, err := cluster.Root()
	if err != nil {
		return original{}, err
	}
	dir := filepath.Join(root, "test", "oracle", "pac")
	cache, err := cluster.CacheDir()
	if err != nil {
		return original{}, err
	}
	bin := filepath.Join(cache, "oracle") + string(filepath.Separator)
	_, _ = fmt.Fprintln(progress, "building Pipelines-as-Code, which takes minutes once")
	if _, err := command(ctx, dir, "go", "build", "-ldflags", "-s -w", "-o", bin, pacModule+"/cmd/"+controller,
		pacModule+"/cmd/"+watcher); err != nil {
		return original{}, err
	}
	module, err := command(ctx, dir, "go", "list", "-m", "-f", "{{.Dir}}", pacModule)
	return original{bin: bin, config: filepath.Join(module, "config")}, err
}

// command runs one in a folder and returns what it prints.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), errors.Join(ctx.Err(), err), said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
