// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../../../../"

// Each section of the documentation that a report names exists. The migration page has it, or leads
// to it, because it names every difference.
func TestPagesExist(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`"(docs/[a-z-]+\.md)#([^"]+)"`)
	tried, migration := 0, read(t, root+"docs/migration.md")
	for _, source := range sources {
		for _, found := range named.FindAllStringSubmatch(read(t, source), -1) {
			tried++
			if page := read(t, root+found[1]); !hasAnchor(page, found[2]) {
				t.Errorf("%s: %s has no section #%s", source, found[1], found[2])
			}
			link := "(" + strings.TrimPrefix(found[1], "docs/") + "#" + found[2] + ")"
			if found[1] != "docs/migration.md" && !strings.Contains(migration, link) {
				t.Errorf("%s: docs/migration.md does not lead to %s", source, link)
			}
		}
	}
	if tried < 8 {
		t.Errorf("%d sections are named; the expression does not find them", tried)
	}
}

// Each reason that explains a difference is one of the planner's.
func TestReasonsExist(t *testing.T) {
	known := regexp.MustCompile(`(?m)^\| \x60(\w+)\x60 \|`).FindAllStringSubmatch(read(t, root+"docs/reasons.md"), -1)
	tried := 0
	for _, list := range regexp.MustCompile(`(?s)reasons\((".*?)\)`).FindAllStringSubmatch(read(t, "known.go"), -1) {
		for _, found := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(list[1], -1) {
			tried++
			if !slices.ContainsFunc(known, func(row []string) bool { return row[1] == found[1] }) {
				t.Errorf("docs/reasons.md has no reason %s", found[1])
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d reasons are named; the expression does not find them", tried)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// hasAnchor reports whether a page has a heading with GitHub's name for an anchor.
func hasAnchor(page, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(found[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}
