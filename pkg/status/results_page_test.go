// SPDX-License-Identifier: Apache-2.0

package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestResultsPageHasAllTitles compares docs/results.md with the titles, the causes and the
// components that refuse. A new one needs a row there.
func TestResultsPageHasAllTitles(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	said := constants(t, "title", "cause", "refuser")
	if len(said) < 40 {
		t.Errorf("only %d titles and causes are found", len(said))
	}
	for name, words := range said {
		row := "\n| `" + regexp.MustCompile(`%[sd]`).ReplaceAllString(words, "…") + "` |"
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/results.md has no row for %s:%s", name, row)
		}
	}
	for _, act := range []string{actNone, "Fix … and push again.", actAdministrators} {
		if !strings.Contains(string(page), "* *"+act+"*") {
			t.Errorf("docs/results.md does not explain %q", act)
		}
	}
}

// constants returns the texts of the constants in files of sentences whose names have one of the
// prefixes.
func constants(t *testing.T, prefixes ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range []string{"sentences.go", "diagnosis/sentences.go"} {
		addConstants(t, found, file, prefixes)
	}
	return found
}

func addConstants(t *testing.T, found map[string]string, path string, prefixes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		for i, name := range spec.Names {
			text, is := spec.Values[i].(*ast.BasicLit)
			for _, prefix := range prefixes {
				if is && strings.HasPrefix(name.Name, prefix) {
					if found[name.Name], err = strconv.Unquote(text.Value); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		return true
	})
}
