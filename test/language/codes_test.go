// SPDX-License-Identifier: Apache-2.0

package language

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The codes that comments, names of tests and pages use are explained on a page.
func TestEveryCodeIsExplained(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ((?:I-)?[A-Z]?\d+(?:, [A-Z]\d+)?)\b[^|]*\|`)
	explained := map[string]bool{}
	for _, page := range []string{"codes.md", "errors.md"} {
		for _, row := range rows.FindAllStringSubmatch(readFile(t, filepath.Join("../../docs", page)), -1) {
			for _, code := range strings.Split(row[1], ", ") {
				explained[code] = true
			}
		}
	}
	explained["L8"] = true // a sentence below the tables of errors.md
	used := regexp.MustCompile(`\b(I-\d+|[A-HKLSX]\d{1,2})(?:[:;,.)]| and | to )|func Test([A-HS]\d{1,2})[A-Z]`)
	for file, text := range prose(t) {
		for _, match := range used.FindAllStringSubmatch(text, -1) {
			if code := match[1] + match[2]; !explained[code] {
				t.Errorf("%s uses %s, which is neither in docs/codes.md nor in docs/errors.md", file, code)
			}
		}
	}
}

// A page or a comment must not send its reader to a document that is not in the repository.
func TestNothingCitesWhatIsNotHere(t *testing.T) {
	absent := regexp.MustCompile("(?:^|[\\s(`])spec/[a-z]+\\.md|\\bissue \\d+|\\bissues/#?\\d+\\.md")
	for file, text := range prose(t) {
		if cited := absent.FindString(text); cited != "" {
			t.Errorf("%s cites %q", file, strings.TrimSpace(cited))
		}
	}
}

// generatedCode matches a file that a generator has written (go help generate).
var generatedCode = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sources returns the Go files and the pages of the repository by path. Generated code and test
// data are left out.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains([]string{".git", "dist", "testdata"}, entry.Name()) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ".md"), strings.HasSuffix(path, ".go"):
			if text := readFile(t, path); !generatedCode.MatchString(text) {
				all[strings.TrimPrefix(filepath.ToSlash(path), "../../")] = text
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prose returns the pages, and the comments and names of functions of the Go files, by path.
func prose(t *testing.T) map[string]string {
	t.Helper()
	all := sources(t)
	for path, text := range all {
		if strings.HasSuffix(path, ".go") {
			all[path] = remarks(text)
		}
	}
	return all
}

// remarks are the lines of Go code that are comments or begin a function.
func remarks(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "func ") {
			lines = append(lines, trimmed)
		}
	}
	return strings.Join(lines, "\n")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
