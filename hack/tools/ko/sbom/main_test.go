// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// S37: an SBOM has to be there, to be about this very image, and to name every module of the
// program in it. The program is this test's own, which has modules enough.
func TestAnSBOMIsOfItsImage(t *testing.T) {
	build, ok := debug.ReadBuildInfo()
	if !ok || len(build.Deps) < 2 {
		t.Fatal("this test has no modules to look for")
	}
	at := filepath.Join(t.TempDir(), "receiver")
	digest := makeLayout(t, at)
	sbom := func(image string, modules ...*debug.Module) string {
		packages := []map[string]string{{"name": image}}
		for _, module := range modules {
			packages = append(packages, map[string]string{"name": module.Path, "versionInfo": module.Version})
		}
		text, err := json.Marshal(map[string]any{"packages": packages})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := build.Deps[0]
	another := append([]*debug.Module{{Path: first.Path, Version: "v0.0.1"}}, build.Deps[1:]...)
	for name, test := range map[string]struct{ text, says string }{
		"there is none":       {"", "has no SBOM"},
		"of another image":    {sbom("sha256:0000", build.Deps...), "is not about the image " + digest},
		"a module is missing": {sbom(digest, build.Deps[1:]...), "does not name " + first.Path},
		"another version":     {sbom(digest, another...), "does not name " + first.Path + " " + first.Version},
		"it is whole":         {sbom(digest, build.Deps...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := at + "-linux-amd64.spdx.json"
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			if test.text != "" {
				if err := os.WriteFile(file, []byte(test.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := check(at)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it says %v, want %q", err, test.says)
			}
		})
	}
}

// makeLayout writes a layout with one image, whose program is this test's, and returns the image's
// digest.
func makeLayout(t *testing.T, at string) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "/ko-app/receiver", Mode: 0o755,
		Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		t.Fatal(err)
	}
	written, err := layout.Write(at, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := written.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}
