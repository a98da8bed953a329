// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// hack/release.sh builds the commit that is checked out twice, in directories whose paths differ.
func TestTwoBuildsAreTheSame(t *testing.T) {
	if testing.Short() || *made != "" {
		t.Skip("builds the images twice, which takes minutes: make test-all does")
	}
	first, second := built(t, "first"), built(t, "another")
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s is %s in one build and %q in the other", name, sum, second[name])
		}
	}
	if len(first) != len(second) || first[manifests] == "" || first["plumb-linux-amd64"] == "" {
		t.Errorf("one build has %d files, the other %d", len(first), len(second))
	}
}

// built returns the checksums of all files of a release, by path.
func built(t *testing.T, directory string) map[string]string {
	t.Helper()
	source := filepath.Join(t.TempDir(), directory)
	from, err := filepath.Abs(root)
	must(t, err)
	runIn(t, ".", nil, "git", "clone", "--quiet", "--depth=1", "file://"+from, source)
	runIn(t, source, []string{"VERSION=v0.1.0", "PLATFORMS=linux/amd64", "PLUMB_PLATFORMS=linux/amd64"}, "hack/release.sh")
	dir := filepath.Join(source, "dist", "release")
	sums := map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		of := sha256.Sum256(text)
		sums[path] = hex.EncodeToString(of[:])
		return err
	}))
	return sums
}

func runIn(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...) // #nosec G204 -- git, and a script of this repository
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
