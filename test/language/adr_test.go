// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIndexOfDecisionsListsEveryTitle compares the rows of docs/adr/README.md with the titles of
// its pages.
func TestIndexOfDecisionsListsEveryTitle(t *testing.T) {
	index := readFile(t, "../../docs/adr/README.md")
	pages, err := filepath.Glob("../../docs/adr/[0-9]*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/adr has no pages: %v", err)
	}
	for _, page := range pages {
		found := regexp.MustCompile(`^# (\d+)\. (.+)\n`).FindStringSubmatch(readFile(t, page))
		if found == nil {
			t.Errorf("%s does not begin with `# <number>. <title>`", page)
			continue
		}
		row := fmt.Sprintf("| %s | [%s](%s) |", found[1], found[2], filepath.Base(page))
		if !strings.Contains(index, row) {
			t.Errorf("docs/adr/README.md lacks the row %q", row)
		}
	}
	if rows := strings.Count(index, "| ["); rows != len(pages) {
		t.Errorf("docs/adr/README.md has %d rows for %d pages", rows, len(pages))
	}
}
