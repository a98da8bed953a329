// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cited is a test and the codes that it cites.
type cited struct {
	dir, name string
	tier      tier
	codes     map[string]bool
}

// declared is what a top-level declaration of a test file cites for the tests that use it: the
// cases of a table.
type declared struct {
	cases, uses map[string]bool
}

// citations returns all tests of the repository with the codes that they cite.
func citations(t *testing.T, codes []string) []*cited {
	t.Helper()
	r := reader{known: map[string]bool{}, rows: map[string][]string{}, declared: map[string]map[string]*declared{}}
	for _, code := range codes {
		r.known[code] = true
	}
	files := sources(t)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(path, "_test.go") {
			r.file(t, path, files[path])
		}
	}
	r.finish()
	return r.tests
}

// reader collects citations from the sources.
type reader struct {
	known    map[string]bool
	tests    []*cited
	rows     map[string][]string             // the tests of a table's rows, by code
	declared map[string]map[string]*declared // by directory and name
}

func (r *reader) file(t *testing.T, path, source string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if r.declared[dir] == nil {
		r.declared[dir] = map[string]*declared{}
	}
	for _, decl := range parsed.Decls {
		d := r.inspect(decl)
		for _, name := range names(decl) {
			r.declared[dir][name] = d
		}
		function, isFunc := decl.(*ast.FuncDecl)
		if isFunc && function.Doc != nil { // a helper that requires an invariant of what its callers did
			maps.Copy(d.cases,
				r.in(strings.Join(regexp.MustCompile(`I-\d+(?: to I-\d+)?`).FindAllString(function.Doc.Text(), -1), " ")))
		}
		if !isFunc || function.Recv != nil || !regexp.MustCompile(`^(Test|Fuzz)[A-Z]`).MatchString(function.Name.Name) {
			continue
		}
		body := source[files.Position(decl.Pos()).Offset:files.Position(decl.End()).Offset]
		test := &cited{dir: dir, name: function.Name.Name, tier: tierOf(dir, body), codes: map[string]bool{}}
		if inName := regexp.MustCompile(`^Test([A-HS]\d{1,2}b?)[A-Z]`).FindStringSubmatch(test.name); inName != nil {
			test.codes[inName[1]] = true
		}
		for _, comment := range parsed.Comments {
			inBody := comment.End() <= decl.End() && comment.Pos() >= decl.Pos() && !judges(dir)
			if inBody || comment == function.Doc {
				maps.Copy(test.codes, r.in(comment.Text()))
			}
		}
		r.tests = append(r.tests, test)
	}
}

// judges reports whether the cases in a directory are about what judges an installation: a test of
// an invariant's checker does not show the invariant. Names and doc comments of the tests count
// there.
func judges(dir string) bool {
	return slices.Contains([]string{
		"test/campaign", "test/campaign/mutants", "test/canary", "test/invariants", "test/language", "test/livecampaign",
	}, dir)
}

// names are those of a top-level declaration.
func names(decl ast.Decl) (all []string) {
	if function, isFunc := decl.(*ast.FuncDecl); isFunc {
		return []string{function.Name.Name}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		if values, isValues := n.(*ast.ValueSpec); isValues {
			for _, name := range values.Names {
				all = append(all, name.Name)
			}
		}
		return true
	})
	return all
}

// inspect reads the cases of a declaration, what it uses, and the rows of a table that names other
// tests.
func (r *reader) inspect(decl ast.Decl) *declared {
	d := &declared{cases: map[string]bool{}, uses: map[string]bool{}}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			d.uses[n.Name] = true
		case *ast.CallExpr:
			if called, isIdent := n.Fun.(*ast.Ident); isIdent && called.Name == "by" && len(n.Args) > 2 {
				for code := range r.in(literal(n.Args[0])) {
					for _, name := range n.Args[2:] {
						r.rows[code] = append(r.rows[code], literal(name))
					}
				}
				return false
			}
		case *ast.BasicLit:
			if found := regexp.MustCompile(`^(\S+?)(?::? |, |$)`).FindStringSubmatch(literal(n)); found != nil &&
				r.known[found[1]] {
				d.cases[found[1]] = true
			}
		}
		return true
	})
	return d
}

func literal(e ast.Expr) string {
	if lit, isLit := e.(*ast.BasicLit); isLit && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// in returns the known codes of a text, those between "S10 to S27" included.
func (r *reader) in(text string) map[string]bool {
	codes := map[string]bool{}
	for _, found := range regexp.MustCompile(
		`\b((I-|[A-HKS])(\d{1,2})b?)\b(?:(?: to |–)(?:I-|[A-HKS])(\d{1,2})\b)?`).FindAllStringSubmatch(text, -1) {
		codes[found[1]] = true
		first, _ := strconv.Atoi(found[3])
		last, _ := strconv.Atoi(found[4])
		for n := first; n <= last; n++ {
			codes[fmt.Sprint(found[2], n)] = true
		}
	}
	maps.DeleteFunc(codes, func(code string, _ bool) bool { return !r.known[code] })
	return codes
}

// finish gives tests the cases of the tables that they use, and what tables say of them. G1 to G5
// stand for rows of docs/errors.md where Git services' answers are read.
func (r *reader) finish() {
	for _, test := range r.tests {
		r.cases(test, test.name, map[string]bool{})
		for code, names := range r.rows {
			if slices.Contains(names, test.name) {
				test.codes[code] = true
			}
		}
		if strings.HasPrefix(test.dir, "pkg/fault") || strings.HasPrefix(test.dir, "pkg/provider") ||
			strings.HasPrefix(test.dir, "test/forge") {
			maps.DeleteFunc(test.codes, func(code string, _ bool) bool { return code[0] == 'G' })
		}
	}
}

func (r *reader) cases(test *cited, name string, seen map[string]bool) {
	d := r.declared[test.dir][name]
	if d == nil || seen[name] || judges(test.dir) {
		return
	}
	seen[name] = true
	maps.Copy(test.codes, d.cases)
	for used := range d.uses {
		if !strings.HasPrefix(used, "Test") {
			r.cases(test, used, seen)
		}
	}
}
