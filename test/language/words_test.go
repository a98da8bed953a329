// SPDX-License-Identifier: Apache-2.0

package language

import (
	"go/parser"
	"go/token"
	"io/fs"
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

// handWritten calls each for the Go files of the repository that are not generated. The programs in
// test/cluster/binaries are left out: each change of a comment there builds all of them anew.
func handWritten(t *testing.T, each func(path, text string)) {
	t.Helper()
	for _, root := range []string{"pkg", "cmd", "hack", "test"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/testdata/") ||
				strings.Contains(path, "/cluster/binaries/") {
				return err
			}
			if text := readFile(t, path); !strings.Contains(text, "// Code generated ") {
				each(strings.TrimPrefix(filepath.ToSlash(path), "../../"), text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
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

func TestCommentsAvoidConfusingWords(t *testing.T) {
	t.Parallel()
	words := instead()
	handWritten(t, func(path, text string) {
		comments(t, path, text, func(line int, comment string) {
			for better, pattern := range words {
				if found := pattern.FindString(comment); found != "" {
					t.Errorf("%s:%d: not %q but: %s", path, line, found, better)
				}
			}
		})
	})
}

func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	handWritten(t, func(path, text string) {
		product := !strings.HasPrefix(path, "test/") && !strings.HasSuffix(path, "_test.go") &&
			!strings.Contains(path, "/providertest/")
		number := 0
		for line := range strings.Lines(text) {
			number++
			columns := len([]rune(strings.TrimRight(line, "\n")))
			switch comment := strings.HasPrefix(strings.TrimSpace(line), "// "); {
			case strings.HasPrefix(strings.TrimSpace(line), "// +"): // a marker of a generator
			case comment && strings.Contains(line, "(http"): // a link is not broken
			case comment && columns > maxComment:
				t.Errorf("%s:%d: a comment of %d columns, want at most %d", path, number, columns, maxComment)
			case !comment && product && columns > maxLine && !texts.MatchString(line):
				t.Errorf("%s:%d: a line of %d columns, want at most %d", path, number, columns, maxLine)
			}
		}
	})
}

// A path in a comment is one of this repository.
func TestCommentsCiteFilesThatExist(t *testing.T) {
	t.Parallel()
	cited := regexp.MustCompile(`(?:^|[\s("'` + "`" + `])((?:docs|spec|design|review)/[\w./-]*[\w])`)
	handWritten(t, func(path, text string) {
		comments(t, path, text, func(line int, comment string) {
			for _, match := range cited.FindAllStringSubmatch(comment, -1) {
				if !exists(match[1]) {
					t.Errorf("%s:%d: cites %s, which is not in the repository", path, line, match[1])
				}
			}
		})
	})
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
