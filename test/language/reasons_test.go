// SPDX-License-Identifier: Apache-2.0

package language

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	reasonsPage = "../../docs/reasons.md"
	reasonsHead = `# Reasons

Conditions, waits, metrics and logs carry a reason: one word to search for. Generated from the sources by
` + "`go test ./test/language -run TestReasons -update`" + `; a test fails when it is out of date.

| class | what happens next |
|---|---|
| Transient | Plumbline retries with a backoff. |
| Throttled | Plumbline retries at the time that the service or the limit gives. |
| Operator | An operator has to act; Plumbline retries every five minutes, and at once when what it waits for changes. |
| Invalid | The author has to fix the text; the check fails with the message. |
| Ignored | Nothing was asked of Plumbline; it does nothing. |
| False, Unknown | The status of a condition. |

[errors.md](errors.md) shows what the API server and the Git services answer for each reason. … stands for a name, a number or the words of another component.

| reason | class | message | given in |
|---|---|---|---|
`
)

// given is one place where a reason is given.
type given struct{ reason, class, message, pkg string }

// TestReasonsAreListed compares docs/reasons.md with the sources. It fails when a reason is a text
// where it is given, and not a constant.
func TestReasonsAreListed(t *testing.T) {
	files, constants := parseProduct(t)
	all := map[given]bool{}
	for file, parsed := range files {
		dir := path.Dir(file)
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			class, reason, message := reasonOf(call)
			if reason == nil {
				return true
			}
			if literal, isLiteral := reason.(*ast.BasicLit); isLiteral {
				t.Errorf("%s gives the reason %s as a text; make it a constant of the package", file, literal.Value)
			}
			if value := constants.value(dir, reason); value != "" {
				all[given{value, class, shownMessage(message), strings.TrimPrefix(dir, "pkg/")}] = true
			}
			return true
		})
	}
	page := reasonsHead + rowsOf(all)
	if *update {
		if err := os.WriteFile(reasonsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, reasonsPage) != page {
		t.Errorf("docs/reasons.md is out of date: go test ./test/language -run TestReasons -update")
	}
}

func rowsOf(all map[given]bool) string {
	var rows []given
	for g := range all {
		rows = append(rows, g)
	}
	slices.SortFunc(rows, func(a, b given) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.class, b.class), cmp.Compare(a.pkg, b.pkg),
			cmp.Compare(a.message, b.message))
	})
	var page strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", row.reason, row.class, row.message, row.pkg)
	}
	return page.String()
}

// parseProduct returns the files of the product by path, and the constants of their packages.
func parseProduct(t *testing.T) (map[string]*ast.File, constants) {
	t.Helper()
	files, values := map[string]*ast.File{}, constants{}
	for file, text := range goFiles(t) {
		if !isProduct(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = parsed
		values.add(path.Dir(file), parsed)
	}
	return files, values
}

// constants are the string constants of packages: by the package's directory and the name.
type constants map[string]map[string]string

func (c constants) add(dir string, file *ast.File) {
	if c[dir] == nil {
		c[dir] = map[string]string{}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue || len(spec.Values) != len(spec.Names) {
			return true
		}
		for i, name := range spec.Names {
			if literal, isLiteral := spec.Values[i].(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
				c[dir][name.Name], _ = strconv.Unquote(literal.Value)
			}
		}
		return true
	})
}

// value returns the text of a constant that the package in dir uses, "" for what is no constant.
func (c constants) value(dir string, expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		return c[dir][e.Name]
	case *ast.SelectorExpr:
		for other, values := range c {
			if of, isIdent := e.X.(*ast.Ident); isIdent && values[e.Sel.Name] != "" &&
				(path.Base(other) == of.Name || strings.HasSuffix(of.Name, path.Base(other))) {
				return values[e.Sel.Name]
			}
		}
	}
	return ""
}

// reasonOf returns what a call says of a fault or of a condition: its class, reason and message.
func reasonOf(call *ast.CallExpr) (class string, reason, message ast.Expr) {
	function, isSelector := call.Fun.(*ast.SelectorExpr)
	if !isSelector {
		return "", nil, nil
	}
	of, _ := function.X.(*ast.Ident)
	switch name := function.Sel.Name; {
	case of != nil && of.Name == "fault" && name == "Throttledf" && len(call.Args) > 2:
		return "Throttled", call.Args[0], call.Args[2]
	case of != nil && of.Name == "fault" && len(call.Args) > 1 &&
		slices.Contains([]string{"Transientf", "Operatorf", "Invalidf", "Ignoredf"}, name):
		return strings.TrimSuffix(name, "f"), call.Args[0], call.Args[1]
	case slices.Contains([]string{"NormalEvent", "normal", "WarningEvent", "warning"}, name) && len(call.Args) == 2:
		return "Event", call.Args[0], call.Args[1]
	case (name == "MarkFalse" || name == "MarkUnknown") && len(call.Args) > 2:
		return strings.TrimPrefix(name, "Mark"), call.Args[1], call.Args[2]
	}
	return "", nil, nil
}

// verb matches what a message takes from its arguments.
var verb = regexp.MustCompile(`%[+#]?[0-9.]*[a-zA-Z]`)

// shownMessage returns a message as the page shows it.
func shownMessage(expression ast.Expr) string {
	text := verb.ReplaceAllString(joined(expression), "…")
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", `\<`, "{{", `{ {`).Replace(text)
}

// joined returns the text of a literal or of literals that are added.
func joined(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return joined(e.X) + joined(e.Y)
	}
	return "…"
}
