// SPDX-License-Identifier: Apache-2.0

// Package mutants has patches that each break one invariant: `make mutants` plays a campaign
// against every one.
package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/test/testcache"
)

// root is this repository, from here; module begins the paths of its packages.
const (
	root   = "../../.."
	module = "github.com/plumbline-ci/plumbline/"
)

var errNoPackage = errors.New("it changes no package")

// listed is the output of `go list` for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// Each patch names its invariant, applies to this tree and leaves packages that compile: a
// campaign against a mutant that does not compile would find nothing. The types of the changed
// packages are checked against the compiler's export data of the others, so that no patch needs a
// build. Each invariant that a campaign checks has at least two patches.
func TestEachPatchBreaksAnInvariant(t *testing.T) {
	patches, err := filepath.Glob("*.patch")
	if err != nil {
		t.Fatal(err)
	}
	changed, dirs, of := map[string][]string{}, map[string]bool{}, map[string]int{}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		breaks := regexp.MustCompile(`^Breaks: (.*)\n`).FindSubmatch(text)
		if breaks == nil || !slices.Contains(invariants(), string(breaks[1])) {
			t.Errorf("%s does not say in its first line what it breaks", patch)
			continue
		}
		of[string(breaks[1])]++
		for _, file := range regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`).FindAllSubmatch(text, -1) {
			changed[patch] = append(changed[patch], string(file[1]))
			dirs["./"+filepath.Dir(string(file[1]))] = true
		}
	}
	for _, invariant := range invariants() {
		if of[invariant] < 2 {
			t.Errorf("%s has %d mutants, want at least two", invariant, of[invariant])
		}
	}
	packages := list(t, dirs)
	compiled := importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	for patch, files := range changed {
		if err := compiles(patched(t, patch, files), files, packages, compiled); err != nil {
			t.Errorf("%s does not compile any more, make it anew: %v", patch, err)
		}
	}
}

func invariants() []string {
	return []string{"I-1", "I-2", "I-3", "I-4", "I-5", "I-6", "I-7", "I-8", "I-9", "I-10", "S21", "pruning", "newest",
		"cancelling", "pairs"}
}

// list returns the packages in the folders and all their imports, by path, after compiling the
// missing ones.
func list(t *testing.T, dirs map[string]bool) map[string]listed {
	t.Helper()
	folders := slices.Collect(maps.Keys(dirs))
	if err := testcache.Packages(t.Context(), root, folders...); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, folders...)
	command := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	command.Dir, command.Stderr = root, &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	packages := map[string]listed{}
	for all := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := all.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// patched returns a folder with the patched files.
func patched(t *testing.T, patch string, files []string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(patch)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "git", "apply", path)
	command.Dir, command.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s does not apply any more, make it anew: %v\n%s", patch, err, out)
	}
	return dir
}

// compiles checks the types of the packages of the files, each of which is taken from the folder.
func compiles(dir string, files []string, packages map[string]listed, compiled types.Importer) error {
	for _, file := range files {
		folder := filepath.Dir(file)
		if err := checks(packages[module+folder], filepath.Join(dir, folder), compiled); err != nil {
			return err
		}
	}
	return nil
}

// checks checks the types of a package, with files of another folder instead of its own.
func checks(p listed, instead string, compiled types.Importer) error {
	if len(p.GoFiles) == 0 {
		return errNoPackage
	}
	all := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(instead, name)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(all, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: compiled}
	if _, err := config.Check(p.ImportPath, all, parsed, nil); err != nil {
		return fmt.Errorf("checking the types of %s: %w", p.ImportPath, err)
	}
	return nil
}
