// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	maxComment = 100
	maxLine    = 120
)

// texts matches a line with a long text, which is not broken so that it can be searched for.
var texts = regexp.MustCompile(`"[^"]{20,}"|` + "`[^`]{20,}`")

// instead lists words that readers of this repository stumbled over, and what to write instead.
func instead() map[string]*regexp.Regexp {
	words := map[string]string{
		"reports whether":                   `tells? whether`,
		"a user who, an account that":       `whoever`,
		"no user, no process, no component": `nobody`,
		"without effect":                    `in vain`,
		"anyway":                            `all the same`,
		"by default":                        `as shipped`,
		"untrusted user, unverified sender": `strangers?`,
		"crashes the controller":            `poisonous`,
		"recreated":                         `made anew`,
		"is evicted, is closed first":       `gives? way`,
		"give up":                           `hopeless`,
		"fix":                               `mends?|mended`,
		"exhausted, reached":                `used up`,
	}
	compiled := map[string]*regexp.Regexp{}
	for better, pattern := range words {
		compiled[better] = regexp.MustCompile(`(?i)\b(` + pattern + `)\b`)
	}
	return compiled
}

// goFiles returns the Go files of the repository by path. The programs in test/cluster/binaries are
// left out: each change of a comment there builds all of them again.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	all := sources(t)
	maps.DeleteFunc(all, func(path, _ string) bool {
		return !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "test/cluster/binaries/")
	})
	return all
}

// isProduct reports whether a Go file is neither a test nor support for tests.
func isProduct(path string) bool {
	return !strings.HasPrefix(path, "test/") && !strings.HasSuffix(path, "_test.go") &&
		!strings.Contains(path, "/providertest/")
}

// comments calls each for the comments of a Go file.
func comments(t *testing.T, path, text string, each func(line int, text string)) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			each(files.Position(comment.Pos()).Line, comment.Text)
		}
	}
}

func TestCommentsAndDecisionsAvoidConfusingWords(t *testing.T) {
	t.Parallel()
	words := instead()
	check := func(place, text string) {
		for better, pattern := range words {
			if found := pattern.FindString(text); found != "" {
				t.Errorf("%s: not %q but: %s", place, found, better)
			}
		}
	}
	for path, text := range goFiles(t) {
		comments(t, path, text, func(line int, comment string) { check(fmt.Sprintf("%s:%d", path, line), comment) })
	}
	for path, text := range sources(t) {
		if strings.HasPrefix(path, "docs/adr/") {
			check(path, text)
		}
	}
}

// literals returns the lines of a Go file that texts of several lines take.
func literals(t *testing.T, path, text string) map[int]bool {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is {
			first, last := files.Position(literal.Pos()).Line, files.Position(literal.End()).Line
			for line := first; line <= last && first < last; line++ {
				taken[line] = true
			}
		}
		return true
	})
	return taken
}

func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for path, text := range goFiles(t) {
		number, long := 0, literals(t, path, text)
		for line := range strings.Lines(text) {
			number++
			columns := len([]rune(strings.TrimRight(line, "\n")))
			switch comment := strings.HasPrefix(strings.TrimSpace(line), "// "); {
			case strings.HasPrefix(strings.TrimSpace(line), "// +"): // a marker of a generator
			case comment && strings.Contains(line, "(http"): // a link is not broken
			case comment && columns > maxComment:
				t.Errorf("%s:%d: a comment of %d columns, want at most %d", path, number, columns, maxComment)
			case !comment && columns > maxLine && !long[number] && !texts.MatchString(line):
				t.Errorf("%s:%d: a line of %d columns, want at most %d", path, number, columns, maxLine)
			}
		}
	}
}

// A path in a comment is one of this repository.
func TestCommentsCiteFilesThatExist(t *testing.T) {
	t.Parallel()
	cited := regexp.MustCompile(`(?:^|[\s("'` + "`" + `])((?:docs|spec|design|review)/[\w./-]*[\w])`)
	for path, text := range goFiles(t) {
		comments(t, path, text, func(line int, comment string) {
			for _, match := range cited.FindAllStringSubmatch(comment, -1) {
				if !exists(match[1]) {
					t.Errorf("%s:%d: cites %s, which is not in the repository", path, line, match[1])
				}
			}
		})
	}
}

// exists reports whether a path is one of the repository: a file, a directory or the number of an
// ADR.
func exists(path string) bool {
	path = filepath.Join("../..", path)
	if _, err := os.Stat(path); err == nil {
		return true
	}
	found, err := filepath.Glob(path + "-*.md")
	return err == nil && len(found) > 0
}
