// SPDX-License-Identifier: Apache-2.0

package language

import (
	"regexp"
	"strings"
	"testing"
)

// maxWords is the longest sentence of the pages that a newcomer reads first.
const maxWords = 30

func short() []string {
	return []string{"README.md", "docs/README.md", "docs/authors.md", "docs/getting-started.md", "docs/migration.md", "docs/troubleshooting.md"}
}

// sentences returns what a page says, without code and the addresses of links. A cell of a table,
// an item of a list and a paragraph end a sentence, too.
func sentences(page string) (all []string) {
	page = fences.ReplaceAllString(page, "\n")
	page = regexp.MustCompile(`(?s)<!--.*?-->|<[^>\n]+>`).ReplaceAllString(page, "")
	page = spans.ReplaceAllString(page, "CODE")
	page = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(page, "$1")
	page = regexp.MustCompile(`(?m)^\s*(?:[*-]|\d+\.|#+|>) `).ReplaceAllString(page, "\n\n")
	for _, paragraph := range regexp.MustCompile(`\n\s*\n|\||\n#`).Split(page, -1) {
		text := strings.Join(strings.Fields(paragraph), " ") + " "
		all = append(all, regexp.MustCompile(`[.!?:]['")*]*\s+`).Split(text, -1)...)
	}
	return all
}

func TestFirstPagesHaveShortSentences(t *testing.T) {
	t.Parallel()
	for _, name := range short() {
		for _, sentence := range sentences(readFile(t, "../../"+name)) {
			if n := len(strings.Fields(sentence)); n > maxWords {
				t.Errorf("%s: a sentence of %d words, want at most %d: %s", name, n, maxWords, sentence)
			}
		}
	}
}

func TestPagesAvoidConfusingWords(t *testing.T) {
	t.Parallel()
	words := instead()
	for better, pattern := range map[string]string{
		"problem, outage": `troubles?`,
		"apply":           `heeds?|heeded`,
		"annotation":      `wish|wishes`,
		"started":         `begun`,
	} {
		words[better] = regexp.MustCompile(`(?i)\b(` + pattern + `)\b`)
	}
	for name, page := range pages(t) {
		for _, sentence := range sentences(page) {
			for better, pattern := range words {
				if found := pattern.FindString(sentence); found != "" {
					t.Errorf("%s: not %q but: %s (%s)", name, found, better, sentence)
				}
			}
		}
	}
}
