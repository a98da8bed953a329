// SPDX-License-Identifier: Apache-2.0

package language

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	guaranteesPage = "../../docs/guarantees.md"
	guaranteesHead = `# Guarantees: which tests show which code

Generated from the sources of the tests by ` + "`go test ./test/language -run TestGuarantees -update`" + `; a test fails when it is out of date.

A test shows a code of [codes.md](codes.md), or a row K1, K2, … of [errors.md](errors.md#kubernetes), when it cites it: in its name, its doc comment, a comment or the
name of a case in its body, or in the tables of ` + "`test/e2e`" + `. The tests of the last column run in ` + "`make test-all`" + ` only.

| code | unit tests | with a cluster | installations (test/e2e) | only in make test-all |
|---|---|---|---|---|
`
)

// TestGuaranteesAreListed compares docs/guarantees.md with the sources. It fails when a code has no
// test that runs in make test.
func TestGuaranteesAreListed(t *testing.T) {
	codes := explainedCodes(t)
	tests := citations(t, codes)
	var page strings.Builder
	page.WriteString(guaranteesHead)
	for _, code := range codes {
		columns := map[tier]map[string][]string{}
		for _, c := range tests {
			if c.codes[code] {
				if columns[c.tier] == nil {
					columns[c.tier] = map[string][]string{}
				}
				columns[c.tier][c.dir] = append(columns[c.tier][c.dir], c.name)
			}
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", code, cell(columns[unit]), cell(columns[withCluster]),
			cell(columns[endToEnd]), cell(columns[testAll]))
		if len(columns[unit])+len(columns[withCluster])+len(columns[endToEnd]) == 0 {
			t.Errorf("no test that runs in make test cites %s", code)
		}
	}
	if *update {
		if err := os.WriteFile(guaranteesPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, guaranteesPage) != page.String() {
		t.Errorf("docs/guarantees.md is out of date: go test ./test/language -run TestGuarantees -update")
	}
}

// maxNames is how many tests of one directory a cell names. What more of them show is checked by a
// helper.
const maxNames = 12

// cell lists tests by directory. Those of test/e2e need no directory.
func cell(dirs map[string][]string) string {
	var all []string
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		names := strings.Join(slices.Sorted(slices.Values(dirs[dir])), ", ")
		if len(dirs[dir]) > maxNames {
			names = fmt.Sprintf("more than %d tests", maxNames)
		}
		if dir != "test/e2e" {
			names = dir + ": " + names
		}
		all = append(all, names)
	}
	return strings.Join(all, "; ")
}

// tier says when a test runs.
type tier int

const (
	unit tier = iota
	withCluster
	endToEnd
	testAll
)

// tierOf returns the tier of a test. Its directory says it, unless its body leaves it to make
// test-all.
func tierOf(dir, body string) tier {
	switch {
	case regexp.MustCompile(`\n\t(onlyInTestAll\(t\)|if testing.Short\(\) \{\n\t\tt\.Skip\(.*)\n`).MatchString(body),
		dir == "test/hostile", dir == "test/bench":
		return testAll
	case dir == "test/e2e":
		return endToEnd
	case slices.Contains(
		[]string{"test/cluster", "test/faults", "test/installation", "test/operator", "test/campaign"}, dir):
		return withCluster
	}
	return unit
}

// explainedCodes are the codes of docs/codes.md and the rows K of docs/errors.md, in order.
func explainedCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	for page, row := range map[string]string{"codes.md": `(?m)^\| ((?:I-|[A-HS])\d[^|]*?) \|`,
		"errors.md": `(?m)^\| (K\d+) \|`} {
		for _, found := range regexp.MustCompile(row).FindAllStringSubmatch(readFile(t, "../../docs/"+page), -1) {
			codes = append(codes, strings.Split(found[1], ", ")...)
		}
	}
	number := func(code string) (n int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(code, "I-"), "%d", &n)
		_, _ = fmt.Sscanf(code[1:], "%d", &n)
		return max(n, -n)
	}
	slices.SortFunc(codes, func(a, b string) int {
		return cmp.Or(strings.Index("IABCDEFGHSK", a[:1])-strings.Index("IABCDEFGHSK", b[:1]), number(a)-number(b),
			strings.Compare(a, b))
	})
	codes = slices.Compact(codes)
	if len(codes) < 150 {
		t.Fatalf("only %d codes: %v", len(codes), codes)
	}
	return codes
}
