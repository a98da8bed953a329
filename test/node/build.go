// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// programsDir is the Go module of the programs that test/cluster does not have.
const programsDir = "test/node/binaries/kubernetes"

// programs are Kubernetes' own mains.
func programs() []string {
	return []string{"kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet"}
}

// tektonImages are the images that Tekton's manifests name: commands of its module.
func tektonImages() []string {
	return []string{"controller", "webhook", "entrypoint", "nop", "sidecarlogresults", "workingdirinit"}
}

// workshop builds what the node runs. Its results are kept in cache by a hash of what decides them.
type workshop struct{ root, cache, dir string }

// build makes the folders that the stage inside reads: dir/bin, dir/images and the manifests.
func (w *workshop) build(ctx context.Context) error {
	for _, folder := range []string{"bin", "images", "logs", "cni", "tmp"} {
		if err := os.MkdirAll(filepath.Join(w.dir, folder), 0o755); err != nil {
			return err
		}
	}
	if err := w.programs(ctx); err != nil {
		return err
	}
	if err := w.images(ctx); err != nil {
		return err
	}
	return w.manifests(ctx)
}

func (w *workshop) programs(ctx context.Context) error {
	control, err := cluster.Build(ctx, os.Stdout)
	if err != nil {
		return err
	}
	own, err := w.once(programsDir, "bin", cluster.KubernetesFlags, func(to string) error {
		args := []string{"build", "-ldflags", cluster.KubernetesFlags, "-o", to + "/"}
		for _, program := range programs() {
			args = append(args, "k8s.io/kubernetes/cmd/"+program)
		}
		_, err := w.command(ctx, programsDir, "go", args...)
		return err
	})
	if err != nil {
		return err
	}
	links := map[string]string{cluster.Etcd: control, cluster.APIServer: control}
	for _, program := range programs() {
		links[program] = own
	}
	for program, dir := range links {
		err = errors.Join(err, os.Symlink(filepath.Join(dir, program), filepath.Join(w.dir, "bin", program)))
	}
	return err
}

// images writes an OCI layout for each image into dir/images.
func (w *workshop) images(ctx context.Context) error {
	if _, err := w.command(ctx, ".", "hack/images.sh"); err != nil {
		return err
	}
	printed, err := w.command(ctx, "hack/tools/ko", "go", "run", "./base", "-layout", w.koCache()+"/img")
	if err != nil {
		return err
	}
	base := strings.TrimSpace(string(printed))
	tekton, err := w.once("test/cluster/binaries/tekton", "tekton", base, func(to string) error {
		for _, image := range tektonImages() {
			if err := w.ko(ctx, base, image, filepath.Join(to, image)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, image := range tektonImages() {
		links["tekton-"+image] = filepath.Join(tekton, image)
	}
	for _, image := range []string{"receiver", "controller"} {
		links[image] = filepath.Join(w.root, "dist/images", image)
	}
	for name, layout := range links {
		if err := os.Symlink(layout, filepath.Join(w.dir, "images", name)); err != nil {
			return err
		}
	}
	busybox, _ := find("busybox")
	return writeTools(filepath.Join(w.dir, "images", "tools"), busybox)
}

func (w *workshop) koCache() string { return filepath.Join(w.cache, "ko") }

// ko builds one of Tekton's images on Plumbline's base, without a registry.
func (w *workshop) ko(ctx context.Context, base, image, layout string) error {
	_, err := w.command(ctx, "test/cluster/binaries/tekton", "env", "KOCACHE="+w.koCache(),
		"KO_DEFAULTBASEIMAGE="+base, "KO_DOCKER_REPO=node.invalid", "GOFLAGS=-ldflags=-s",
		"go", "tool", "-modfile="+filepath.Join(w.root, "hack/tools/ko/go.mod"), "ko", "build", "--jobs", "1",
		"--push=false", "--sbom=none", "--platform=linux/"+runtime.GOARCH, "--oci-layout-path="+layout,
		"github.com/tektoncd/pipeline/cmd/"+image)
	return err
}

// once calls make with a new folder if no call with the same module and settings has succeeded, and
// returns the folder.
func (w *workshop) once(module, kind, settings string, build func(to string) error) (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version(), runtime.GOARCH, settings)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(w.root, module, name))
		if err != nil {
			return "", fmt.Errorf("reading a module: %w", err)
		}
		hash.Write(data)
	}
	target := filepath.Join(w.cache, kind+"-"+hex.EncodeToString(hash.Sum(nil))[:16])
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		return target, err
	}
	partial := target + ".partial"
	err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755))
	if err == nil {
		err = build(partial)
	}
	if err == nil {
		err = os.Rename(partial, target)
	}
	return target, err
}

// command runs a command in a folder of the repository and returns what it printed.
func (w *workshop) command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Join(w.root, dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	fmt.Printf("building: %s %s\n", name, strings.Join(args, " "))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}
