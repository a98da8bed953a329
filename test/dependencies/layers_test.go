// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/testcache"
)

const (
	root         = "../.."
	architecture = root + "/docs/architecture.md"
	generated    = "pkg/client"

	// The limits that docs/architecture.md states. A package, or a value that steps share, is split
	// before it exceeds one.
	maxImports = 12
	maxFields  = 10
	maxLines   = 2400
	// maxDirectories is how many pkg has today: a new package goes into one of them.
	maxDirectories = 16
	// slack is how many lines below its limit in larger a package may be.
	slack = 200
)

// larger lists the packages that have more than maxLines, which they passed when their lines became
// at most 120 columns wide.
func larger() map[string]int {
	return map[string]int{
		"pkg/pipeline/resolve": 2850, "pkg/plan": 3000,
		"pkg/receiver":        2550,
		"pkg/provider/github": 3850, "pkg/provider/gitlab": 2850,
		"pkg/reconciler/repository": 2450, "cmd/plumb/internal/migrate": 2700,
	}
}

// pkg is a package of the product as go list shows it, tests left out.
type pkg struct {
	ImportPath, Dir  string
	GoFiles, Imports []string
	Deps             []string // all packages that it needs
}

// product returns the packages of cmd and pkg by their path in the repository, and the packages of
// the repository that each imports. Generated packages are left out.
func product(t *testing.T) (packages map[string]pkg, imports map[string][]string) {
	t.Helper()
	patterns := []string{module + "pkg/...", module + "cmd/..."}
	if err := testcache.Packages(t.Context(), root, patterns...); err != nil {
		t.Fatal(err)
	}
	list := append([]string{"list", "-json=ImportPath,Dir,GoFiles,Imports,Deps"}, patterns...)
	out, err := exec.CommandContext(t.Context(), "go", list...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages, imports = map[string]pkg{}, map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, imports
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, generated) || len(p.GoFiles) == 0 {
			continue
		}
		packages[name] = p
		for _, path := range p.Imports {
			if path, found := strings.CutPrefix(path, module); found {
				imports[name] = append(imports[name], path)
			}
		}
	}
}

// directory returns the directory below pkg that a package is in, or "cmd".
func directory(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] == "cmd" {
		return "cmd"
	}
	return parts[1]
}

// levels reads the line of docs/architecture.md that orders the directories: 0 is the top.
func levels(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^cmd → .*$`).Find(text)
	if line == nil {
		t.Fatal("docs/architecture.md has no line that starts with: cmd →")
	}
	order := map[string]int{}
	for level, names := range strings.Split(string(line), " → ") {
		for name := range strings.SplitSeq(names, ", ") {
			order[name] = level
		}
	}
	return order
}

func TestImportsRunDownward(t *testing.T) {
	t.Parallel()
	_, imports := product(t)
	order := levels(t)
	for name, paths := range imports {
		from, known := order[directory(name)]
		if !known {
			t.Errorf("%s: the line of docs/architecture.md does not name its directory", name)
			continue
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, "pkg/") && !strings.HasPrefix(path, "cmd/") {
				continue // the manifests in config, which programs embed
			}
			if to := order[directory(path)]; directory(path) != directory(name) && to <= from {
				t.Errorf("%s imports %s, which is not below it in docs/architecture.md", name, path)
			}
		}
	}
}

func TestPkgHasFewDirectories(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root + "/pkg")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > maxDirectories {
		t.Errorf("pkg has %d directories, want at most %d", len(entries), maxDirectories)
	}
}

// composes reports whether a package puts parts together: a program, or a package with a
// controller.
func composes(p pkg, name string) bool {
	return strings.HasPrefix(name, "cmd/") || slices.Contains(p.GoFiles, "controller.go")
}

// everywhere reports whether every package may import path.
func everywhere(path string) bool {
	return strings.HasPrefix(path, "pkg/apis/") ||
		slices.Contains([]string{"pkg/fault", "pkg/git", "pkg/runtime/panics"}, path)
}

func TestPackagesImportFewOthers(t *testing.T) {
	t.Parallel()
	packages, imports := product(t)
	for name, paths := range imports {
		paths = slices.DeleteFunc(slices.Clone(paths), everywhere)
		if len(paths) > maxImports && !composes(packages[name], name) {
			t.Errorf("%s imports %d packages of ours, want at most %d: %s",
				name, len(paths), maxImports, strings.Join(paths, " "))
		}
	}
}

func TestPackagesAreSmall(t *testing.T) {
	t.Parallel()
	packages, _ := product(t)
	for name, p := range packages {
		lines := 0
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte("// Code generated")) {
				lines += bytes.Count(text, []byte("\n"))
			}
		}
		limit, exception := larger()[name]
		if !exception {
			limit = maxLines
		}
		if lines > limit {
			t.Errorf("%s has %d lines, want at most %d", name, lines, limit)
		}
		if exception && lines < limit-slack {
			t.Errorf("%s has %d lines: lower its limit of %d", name, lines, limit)
		}
	}
}

// shared are the packages whose values several steps read.
func shared() []string {
	const gitevent = "pkg/reconciler/gitevent"
	return []string{
		gitevent, gitevent + "/attempt", gitevent + "/deps", gitevent + "/gitauth",
		"pkg/authz", "pkg/credentials", "pkg/plan", "pkg/plan/annotations", "pkg/plan/rerun", "pkg/store/plans",
	}
}

func TestSharedValuesAreSmall(t *testing.T) {
	t.Parallel()
	packages, _ := product(t)
	for _, name := range shared() {
		structs := structsOf(t, packages[name])
		if len(structs) == 0 {
			t.Errorf("%s has no struct", name)
		}
		for of := range structs {
			if n := fields(structs, of, name != "pkg/plan"); n > maxFields {
				t.Errorf("%s.%s has %d fields, want at most %d", name, of, n, maxFields)
			}
		}
	}
}

// structsOf returns the struct types of a package by name.
func structsOf(t *testing.T, p pkg) map[string]*ast.StructType {
	t.Helper()
	structs := map[string]*ast.StructType{}
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, isType := n.(*ast.TypeSpec); isType {
				if s, isStruct := spec.Type.(*ast.StructType); isStruct {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return structs
}

// fields counts the fields of a struct. With inner, an embedded struct of the same package counts
// as its fields. That is not asked of pkg/plan, where each embedded value is one group of
// questions.
func fields(structs map[string]*ast.StructType, name string, inner bool) int {
	n := 0
	for _, field := range structs[name].Fields.List {
		embedded := strings.TrimPrefix(fmt.Sprint(field.Type), "*")
		if _, found := structs[embedded]; inner && found && len(field.Names) == 0 {
			n += fields(structs, embedded, inner)
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}
