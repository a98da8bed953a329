// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
	// settings are keys of its ConfigMap that are not as shipped.
	settings map[string]string
}

// buildOriginal builds the controller and the watcher of the release in pac/go.mod, once, into the cache of the test cluster's binaries.
func buildOriginal(ctx context.Context, progress io.Writer) (original, error) {
	root, err := cluster.Root()
	if err != nil {
		return original{}, err
	}
	dir := filepath.Join(root, "test", "oracle", "pac")
	if _, err := command(ctx, dir, "go", "mod", "download", pacModule); err != nil {
		return original{}, err
	}
	module, err := command(ctx, dir, "go", "list", "-m", "-f", "{{.Dir}}", pacModule)
	if err != nil {
		return original{}, err
	}
	bin, err := cacheFolder(ctx, dir)
	if err != nil {
		return original{}, err
	}
	for _, name := range []string{controller, watcher} {
		if _, err := os.Stat(filepath.Join(bin, name)); err == nil {
			continue
		}
		begin := time.Now()
		_, _ = fmt.Fprintf(progress, "building %s (once) ... ", name)
		partial := filepath.Join(bin, "."+name+".partial")
		if _, err := command(ctx, dir, "go", "build", "-ldflags", "-s -w", "-o", partial, pacModule+"/cmd/"+name); err != nil {
			return original{}, err
		}
		if err := os.Rename(partial, filepath.Join(bin, name)); err != nil {
			return original{}, err
		}
		_, _ = fmt.Fprintln(progress, time.Since(begin).Round(time.Second))
	}
	return original{bin: bin, config: filepath.Join(module, "config")}, nil
}

// cacheFolder is named after everything that decides the result, and made if need be.
func cacheFolder(ctx context.Context, dir string) (string, error) {
	cache := os.Getenv(cluster.CacheEnv)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a cache folder (set %s): %w", cluster.CacheEnv, err)
		}
		cache = filepath.Join(user, "plumbline")
	}
	version, err := command(ctx, dir, "go", "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write([]byte(version))
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		hash.Write(data)
	}
	bin := filepath.Join(cache, "oracle", hex.EncodeToString(hash.Sum(nil))[:16])
	return bin, os.MkdirAll(bin, 0o755)
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
