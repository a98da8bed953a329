// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

func TestMissingNamesEachPackageOnce(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	all := func(program string) (string, bool) { return program, true }
	if lines := missing(0, all); len(lines) != 0 {
		t.Errorf("with everything there, %q is missing", lines)
	}
	lines := missing(1000, none)
	if want := "runc: apt-get install --no-install-recommends runc"; !slices.Contains(lines, want) {
		t.Errorf("%q has no line %q", lines, want)
	}
	if !strings.HasPrefix(lines[0], "root: ") {
		t.Errorf("the first line is %q, want that root is missing", lines[0])
	}
	packages := 0
	for _, l := range lines {
		if strings.HasSuffix(l, " containerd") {
			packages++
		}
	}
	if packages != 1 {
		t.Errorf("%d lines install containerd, want 1: %q", packages, lines)
	}
}

// The programs of the node have the version of the test cluster's API server.
func TestProgramsHaveVersionOfAPIServer(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, module := range []string{programsDir, "test/cluster/binaries/kubernetes"} {
		data, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, regexp.MustCompile(`\tk8s\.io/kubernetes (\S+)`).FindStringSubmatch(string(data))[1])
	}
	if versions[0] != versions[1] || !strings.Contains(cluster.KubernetesFlags, "gitVersion="+versions[0]+" ") {
		t.Errorf("the node has %s, the test cluster %s, and both are built with %s",
			versions[0], versions[1], cluster.KubernetesFlags)
	}
}

func TestImagesAreReplacedByDigest(t *testing.T) {
	objects, err := cluster.Documents([]byte(`apiVersion: v1
kind: Pod
spec:
  containers:
  - image: ko://github.com/plumbline-ci/plumbline/cmd/controller
    args: [-nop-image, "ko://github.com/tektoncd/pipeline/cmd/nop", -shell-image, cgr.dev/chainguard/busybox@sha256:12ab]
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := withImages(objects, map[string]string{"controller": "sha256:1", "tekton-nop": "sha256:2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: node.invalid/controller@sha256:1\n", "- node.invalid/tekton-nop@sha256:2\n", "- " + toolsImage + "\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, err = withImages(objects, map[string]string{"tekton-nop": "sha256:2"})
	if err == nil || !strings.Contains(err.Error(), "cmd/controller") {
		t.Errorf("an image that was not built: %v", err)
	}
}

// Every blob of the layout has the digest that it is named by, and the layer has the program.
func TestToolsImageIsComplete(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "busybox")
	if err := os.WriteFile(program, []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeTools(filepath.Join(dir, "images/tools"), program); err != nil {
		t.Fatal(err)
	}
	digests, err := (&workshop{dir: dir}).digests()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(dir, "images/tools/blobs", strings.Replace(digests["tools"], ":", "/", 1))
	if _, err := os.Stat(blob); err != nil {
		t.Errorf("the index names %v, which is no blob: %v", digests, err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "images/tools/blobs/sha256/*"))
	if err != nil || len(blobs) != 3 {
		t.Fatalf("blobs %v, %v: want layer, configuration and manifest", blobs, err)
	}
	var names []string
	for _, blob := range blobs {
		data, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(data)); sum != filepath.Base(blob) {
			t.Errorf("a blob with the digest %s is named %s", sum, filepath.Base(blob))
		}
		if !json.Valid(data) {
			names = append(names, entries(t, data)...)
		}
	}
	for _, want := range []string{"bin/busybox", "bin/sh"} {
		if !slices.Contains(names, want) {
			t.Errorf("the layer has %v, want %s", names, want)
		}
	}
}

func entries(t *testing.T, layer []byte) (names []string) {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(layer)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestLooseNamesWhatProcessMayDo(t *testing.T) {
	const status = "Uid:\t65532\t65532\t65532\t65532\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	const mounts = "overlay / overlay ro,relatime 0 0\nproc /proc proc rw 0 0\n"
	if complaint := loose(status, mounts); complaint != "" {
		t.Errorf("a restricted process: %s", complaint)
	}
	for field, loosened := range map[string][2]string{
		"Uid":     {strings.Replace(status, "65532", "0", 1), mounts},
		"CapBnd":  {strings.Replace(status, "CapBnd:\t0", "CapBnd:\t1", 1), mounts},
		"Seccomp": {strings.Replace(status, "Seccomp:\t2", "Seccomp:\t0", 1), mounts},
		"written": {status, strings.Replace(mounts, "ro,", "rw,", 1)},
	} {
		if complaint := loose(loosened[0], loosened[1]); !strings.Contains(complaint, field) {
			t.Errorf("%q does not name %s", complaint, field)
		}
	}
}

func TestOOMScoreNeedsCapability(t *testing.T) {
	for status, want := range map[string]bool{
		"CapEff:\t000001fffeffffff\n": false,
		"CapEff:\t000001ffffffffff\n": true,
		"":                            false,
	} {
		if got := mayLowerOOMScore(status); got != want {
			t.Errorf("with %q: %t, want %t", status, got, want)
		}
	}
}

func TestAddedListsOnlyWhatIsNew(t *testing.T) {
	if got := added([]string{"a", "b"}, []string{"b", "c"}); !slices.Equal(got, []string{"c"}) {
		t.Errorf("added %v, want c", got)
	}
}

// The scenarios that start things are always played, and in front.
func TestChosenScenariosFollowTheInstallations(t *testing.T) {
	list := chosen(regexp.MustCompile("too much memory"))
	for i, s := range list {
		if s.first != (i < len(list)-1) {
			t.Errorf("scenario %d of %d is %q", i+1, len(list), s.what)
		}
	}
	if all := chosen(regexp.MustCompile(".")); len(all) != len(scenarios()) || len(list) >= len(all) {
		t.Errorf("%d of %d scenarios are chosen by one's name", len(list), len(all))
	}
}

// A pipeline's manifest is one document that names what the scenario chose.
func TestPipelineManifestIsRead(t *testing.T) {
	manifest := pipeline{name: "fills", script: fill, volume: "8Mi"}.manifest()
	objects, err := cluster.Documents([]byte(manifest))
	if err != nil || len(objects) != 1 || objects[0].GetName() != "fills" {
		t.Fatalf("%v, %v in\n%s", objects, err, manifest)
	}
	for _, want := range []string{"{sizeLimit: 8Mi}", "image: " + toolsImage, fill} {
		if !strings.Contains(manifest, want) {
			t.Errorf("no %q in\n%s", want, manifest)
		}
	}
}
