// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/testcache"
)

// CacheEnv names the environment variable that moves the folder in which built
// binaries are kept. Without it they go below os.UserCacheDir.
const CacheEnv = "PLUMBLINE_CACHE"

const (
	stripped = "-s -w"
	// KubernetesFlags are the linker flags of Kubernetes' programs. knative refuses to start against
	// a server whose version it cannot parse, and a plain build of kube-apiserver reports one.
	KubernetesFlags = stripped +
		" -X k8s.io/component-base/version.gitVersion=v1.35.4" +
		" -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=35"
)

// binary is one program built from one of the modules below binariesDir.
type binary struct {
	name, group, pkg, ldflags string
	// usual is how long two cores take to build it after those before it, with nothing in Go's
	// cache.
	usual time.Duration
}

func binaries() []binary {
	return []binary{
		{Etcd, "etcd", "go.etcd.io/etcd/server/v3", stripped, 25 * time.Second},
		{APIServer, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", KubernetesFlags, 140 * time.Second},
		{ControllerManager, "kubernetes", "./kube-controllers", stripped, 10 * time.Second},
		{TektonController, "tekton", "github.com/tektoncd/pipeline/cmd/controller", stripped, 45 * time.Second},
		{TektonWebhook, "tekton", "github.com/tektoncd/pipeline/cmd/webhook", stripped, 10 * time.Second},
	}
}

// Build makes sure that every binary of the cluster is built and returns the
// folder that holds them. The folder's name is a hash of everything that
// decides the result, so a later call with the same modules builds nothing.
// Two processes that call Build at once build once. progress gets what is being
// built and how long the rest takes.
func Build(ctx context.Context, progress io.Writer) (dir string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err = buildDir(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of binaries: %w", err)
	}
	if len(missing(dir)) == 0 {
		return dir, nil
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another process that held the lock before may have built them.
	return dir, buildAll(ctx, progress, root, dir, missing(dir))
}

// build compiles to a temporary name and renames, so that a binary that exists
// is always complete.
func (b binary) build(ctx context.Context, root, dir string) error {
	temporary := filepath.Join(dir, "."+b.name+".partial")
	cmd := exec.CommandContext(ctx, "go", "build",
		"-C", filepath.Join(root, binariesDir, b.group), "-ldflags", b.ldflags, "-o", temporary, b.pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", b.name, errors.Join(ctx.Err(), err), out)
	}
	if err := os.Rename(temporary, filepath.Join(dir, b.name)); err != nil {
		return fmt.Errorf("building %s: %w", b.name, err)
	}
	return nil
}

func missing(dir string) []binary {
	var list []binary
	for _, b := range binaries() {
		if _, err := os.Stat(filepath.Join(dir, b.name)); err != nil {
			list = append(list, b)
		}
	}
	return list
}

func buildDir(root string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	sum, err := buildHash(root)
	return filepath.Join(cache, "bin", sum), err
}

// CacheDir is the folder in which built binaries are kept.
func CacheDir() (string, error) {
	if cache := os.Getenv(CacheEnv); cache != "" {
		return cache, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder (set %s): %w", CacheEnv, err)
	}
	return filepath.Join(user, "plumbline"), nil
}

// buildHash covers the modules, with what is ours in them, the flags and the Go version.
func buildHash(root string) (string, error) {
	version, err := exec.Command("go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the Go version: %w", err)
	}
	hash := sha256.New()
	hash.Write(version)
	for _, b := range binaries() {
		_, _ = fmt.Fprintln(hash, strings.Join([]string{b.name, b.group, b.pkg, b.ldflags}, "\x00"))
	}
	err = filepath.WalkDir(filepath.Join(root, binariesDir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return testcache.Files(path)
		}
		data, err := os.ReadFile(path)
		_, _ = fmt.Fprintln(hash, strings.TrimPrefix(path, root), len(data))
		hash.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the modules of the binaries: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// lockFile takes an exclusive lock between processes. The kernel releases it when the holder dies,
// so a killed build blocks no other.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	err = Poll(ctx, 200*time.Millisecond, func() error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
