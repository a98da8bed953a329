// SPDX-License-Identifier: Apache-2.0

// Package page holds the tables of docs/errors.md to what the tests of errors have met: each table
// is written by the test of its rows, with UPDATE=1 in the environment, and compared by it
// otherwise.
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Line is one line of a table.
type Line struct {
	// Row is the row's name in docs/errors.md, "K1"; When is what happened, a sentence without a
	// full stop.
	Row, When string
	// Fault is how it was classified.
	Fault *fault.Error
	// Varies: the message depends on the moment at which a connection broke; the page has one of
	// those that may come.
	Varies bool
}

// Check compares the table of one section with its lines, or writes it.
func Check(t *testing.T, section string, lines []Line) {
	t.Helper()
	path := find(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+section+": begin -->\n", "<!-- "+section+": end -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	is, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	want := table(lines, is)
	if is == want {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Errorf("docs/errors.md says of %s:\n%s\nThe test has seen (UPDATE=1 writes it):\n%s", section, missing(is, want),
			missing(want, is))
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// find returns the page's path: tests run in the folder of their package.
func find(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		path := filepath.Join(dir, "docs", "errors.md")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("there is no docs/errors.md above this folder")
	return ""
}

// missing returns the lines that only the first text has.
func missing(from, in string) string {
	there := map[string]bool{}
	for line := range strings.Lines(in) {
		there[line] = true
	}
	var only strings.Builder
	for line := range strings.Lines(from) {
		if !there[line] {
			only.WriteString(line)
		}
	}
	return only.String()
}

// table returns the lines as the page has them. A line that varies stays as the old page has it,
// except for its fault.
func table(lines []Line, before string) string {
	var b strings.Builder
	b.WriteString("| Row | When | Class, reason | Tried again | What a person reads |\n|---|---|---|---|---|\n")
	for _, l := range lines {
		class := l.Fault.Class.String() + " `" + l.Fault.Reason + "`"
		if l.Fault.Unknown {
			class += ", may have been applied"
		}
		head := fmt.Sprintf("| %s | %s | %s | %s | ", l.Row, l.When, class, again(l.Fault))
		line := head + quote(l.Fault.Advice()) + " |\n"
		if known := lineWith(before, head); l.Varies && known != "" {
			line = known
		}
		b.WriteString(line)
	}
	return b.String()
}

// lineWith returns the line that begins with head, "" where there is none.
func lineWith(text, head string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, head) {
			return line
		}
	}
	return ""
}

// again returns what backoff.Requeue does with the fault.
func again(f *fault.Error) string {
	switch {
	case f.Class == fault.Invalid:
		return "never"
	case f.Class == fault.Ignored:
		return "–"
	case f.Class == fault.Operator:
		return "every " + strings.TrimSuffix(fault.OperatorRetry.String(), "0s")
	case f.RetryAfter > 0:
		return "in " + rounded(f.RetryAfter).String()
	case f.Class == fault.Conflict:
		return "after reading again"
	}
	return "with backoff"
}

// rounded hides that the time until a reset is computed in whole seconds.
func rounded(wait time.Duration) time.Duration {
	if wait > time.Minute {
		return wait.Round(10 * time.Second)
	}
	return wait.Round(time.Second)
}

// 127.0.0.1:24397, tekton-pipelines-webhook.tekton-pipelines.svc:24397: each test has ports of its
// own.
var port = regexp.MustCompile(`(127\.0\.0\.1|\.svc):\d{2,}`)

// commit is a commit's id.
var commit = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// quote is a message as code in a table, without what differs from one test to the next.
func quote(message string) string {
	message = port.ReplaceAllString(message, "$1:443")
	message = commit.ReplaceAllString(message, "1a2b3c")
	return "`" + strings.NewReplacer("|", `\|`, "`", "'", "\n", " ").Replace(message) + "`"
}
