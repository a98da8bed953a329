// SPDX-License-Identifier: Apache-2.0

package language

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	fences   = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	spans    = regexp.MustCompile("`[^`\n]+`")
	headings = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	linked   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	html     = regexp.MustCompile(`(?:src|srcset|href)="([^"]+)"`)
)

// pages returns the pages that people read, by path. Decisions are left out: they describe the day
// on which they were made.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, text := range sources(t) {
		if strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, "docs/adr/0") && !strings.HasPrefix(name, "pkg/") && !strings.HasPrefix(name, "test/") {
			all[name] = text
		}
	}
	return all
}

// anchors returns those that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	strip := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	for _, heading := range headings.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		text := link.ReplaceAllString(heading[1], "$1")
		found[strings.ReplaceAll(strip.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
	}
	return found
}

// Every link within the repository leads to a file, and to a heading of it.
func TestLinksOfPagesResolve(t *testing.T) {
	t.Parallel()
	for name, page := range pages(t) {
		prose := spans.ReplaceAllString(fences.ReplaceAllString(page, ""), "")
		for _, link := range append(linked.FindAllStringSubmatch(prose, -1), html.FindAllStringSubmatch(prose, -1)...) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path.Join(path.Dir(name), file)
			if file == "" {
				target = name
			}
			if strings.HasPrefix(target, "../") { // GitHub's own pages, relative to the repository
				continue
			}
			if _, err := os.Stat("../../" + target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, link[1])
			} else if anchor != "" && !anchors(readFile(t, "../../"+target))[anchor] {
				t.Errorf("%s: %s has no heading for #%s", name, target, anchor)
			}
		}
	}
}

// Each page of docs/ is in the index.
func TestIndexListsAllPages(t *testing.T) {
	t.Parallel()
	index := readFile(t, "../../docs/README.md")
	for name := range pages(t) {
		if dir, file := path.Split(name); dir == "docs/" && file != "README.md" && !strings.Contains(index, "]("+file+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// code returns the code of a page: blocks line by line, and spans.
func code(page string) (all []string) {
	for _, block := range fences.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.Split(block[2], "\n")...)
	}
	for _, span := range spans.FindAllString(fences.ReplaceAllString(page, ""), -1) {
		all = append(all, strings.Trim(span, "`"))
	}
	return all
}
