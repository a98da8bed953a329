// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root         = "../.."
	architecture = root + "/docs/architecture.md"
	hall         = "pkg/reconciler/gitevent"
	generated    = "pkg/client"

	// maxImports counts those that not everything may know.
	maxImports = 12
	maxFields  = 10
)

// pkg is a package of ours as go list shows it, tests left out.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// ours returns the packages of the product by their path in the repository, and of each what it
// imports of ours.
func ours(t *testing.T) (packages map[string]pkg, imports map[string][]string) {
	t.Helper()
	track(t, module+"pkg/...", module+"cmd/...")
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"pkg/...", module+"cmd/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages, imports = map[string]pkg{}, map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
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
			if path, of := strings.CutPrefix(path, module); of {
				imports[name] = append(imports[name], path)
			}
		}
	}
}

// known reports whether a package has values that everything may know.
func known(path string) bool {
	return strings.HasPrefix(path, "pkg/apis/") || slices.Contains([]string{"pkg/fault", "pkg/git", "pkg/runtime/panics"}, path)
}

// shown is what the table of docs/architecture.md says of imports: without the values that
// everything may know.
func shown(imports []string) string {
	names := map[string]bool{}
	for _, path := range imports {
		switch {
		case known(path):
		case strings.HasPrefix(path, generated):
			names["generated"] = true
		default:
			names[strings.TrimPrefix(path, "pkg/")] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// table is the rows of docs/architecture.md's last table.
func table(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "## What each package imports")
	if !found {
		t.Fatal("no section about imports")
	}
	rows := map[string]string{}
	for line := range strings.Lines(last) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		rows[strings.Trim(strings.TrimSpace(cells[0]), "`")] = strings.TrimSpace(cells[2])
	}
	return rows
}

func TestTheArchitectureIsAsItIsWritten(t *testing.T) {
	t.Parallel()
	packages, imports := ours(t)
	rows := table(t)
	for name := range packages {
		want, found := rows[name]
		delete(rows, name)
		if got := shown(imports[name]); !found {
			t.Errorf("docs/architecture.md has no row for %s; it imports %s", name, got)
		} else if got != want {
			t.Errorf("%s imports\n  %s\ndocs/architecture.md says\n  %s", name, got, want)
		}
	}
	for name := range rows {
		t.Errorf("docs/architecture.md has a row for %s, which does not exist", name)
	}
}

func TestNoPackageKnowsTooMany(t *testing.T) {
	t.Parallel()
	_, imports := ours(t)
	for name, all := range imports {
		all = slices.DeleteFunc(slices.Clone(all), known)
		if len(all) > maxImports && !strings.HasPrefix(name, "cmd/") {
			t.Errorf("%s imports %d packages of ours, at most %d may be: %s", name, len(all), maxImports, strings.Join(all, " "))
		}
	}
}

// A step knows what is shared and none of the others.
func TestNoStepKnowsAnother(t *testing.T) {
	t.Parallel()
	packages, imports := ours(t)
	shared := []string{hall + "/steps", hall + "/wiring"}
	found := 0
	for name := range packages {
		if !strings.HasPrefix(name, hall+"/") || slices.Contains(shared, name) {
			continue
		}
		found++
		for _, path := range imports[name] {
			if strings.HasPrefix(path, hall) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if found != 7 {
		t.Errorf("%d steps, want 7", found)
	}
}

// What the steps share, and what the planner takes and gives, stays small enough to be known by
// heart.
func TestSharedValuesAreSmall(t *testing.T) {
	t.Parallel()
	packages, _ := ours(t)
	checked := 0
	for _, name := range []string{"pkg/reconciler/gitevent/attempt", "pkg/store/plans", "pkg/credentials", "pkg/plan", "pkg/authz", "pkg/plan/rerun", "pkg/plan/annotations", "pkg/reconciler/gitevent/gitauth", hall, "pkg/reconciler/gitevent/clients", hall + "/steps"} {
		for _, file := range packages[name].GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(packages[name].Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, isType := n.(*ast.TypeSpec)
				if !isType {
					return true
				}
				if fields, isStruct := spec.Type.(*ast.StructType); isStruct {
					checked++
					if n := count(fields); n > maxFields {
						t.Errorf("%s has %d fields, at most %d may be", fmt.Sprint(name, ".", spec.Name), n, maxFields)
					}
				}
				return true
			})
		}
	}
	if checked < 10 {
		t.Errorf("only %d values found", checked)
	}
}

func count(s *ast.StructType) int {
	n := 0
	for _, field := range s.Fields.List {
		n += max(1, len(field.Names))
	}
	return n
}
