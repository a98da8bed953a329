// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// large are comments that are as long as a service takes them.
func large() map[string]string {
	const size = 64 << 10
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	var arguments strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&arguments, "a%d=%d ", i, i)
	}
	return map[string]string{
		"commands": fill("/test\n"), "named commands": fill("/test a\n"), "names": "/test " + fill("a "),
		"slashes": fill("/"), "10,000 arguments": "/test " + arguments.String(),
		"a long name": "/test " + fill("a"), "open quotes": `/test a="` + fill(`\"`),
		"many open quotes": "/test " + fill(`a="`), "quotes": `/test a="" ` + fill(`a="" `),
		"open fences": "/test\n" + fill("```x\n"), "markers": "/test\n" + fill("- "), "indents": "/test\n" + fill(" "),
		"declarations without an end": "/test\nx" + fill("<!A"), "the same in paragraphs": "/test\n" + fill("x <?\n***\n"),
		"an end after many blocks": "/test\n" + fill("x <?\n***\n") + "?>",
		"HTML comments":            "/test\n" + fill("<!--"),
		"closed HTML comments":     "/test\n" + fill("<!-- -->"), "quotations": "/test\n" + fill(">"), "elements": "/test\n" +
			fill("<pre></pre>"), "open elements": "/test\n" + fill("<pre>"), "quotes in lists": "/test\n" + fill("- >\n"),
		"empty lines": "/test" + fill("\n"), "a GitLab note": "/test\n" + strings.Repeat("/test a\n", 125_000),
		"a line that is longer than what is read": "/test\n" + strings.Repeat("x", 1_000_000) + "\n/cancel",
	}
}

// The parser reads a comment of the maximum size in milliseconds. The deadline only detects a
// parser whose time grows with the square of the size.
func TestLargeCommentsAreReadInBoundedTime(t *testing.T) {
	for name, comment := range large() {
		start := time.Now()
		got, err := Parse(comment, "", false)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		if err != nil && !fault.Is(err, fault.Invalid) || name != "slashes" && (got == nil || got.Kind != Test) ||
			len(fmt.Sprint(err)) > 1000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	if got, err := Parse(large()["10,000 arguments"], "", false); err != nil || len(got.Args) != 10_000 {
		t.Error(err)
	}
}

// Every comment is a command, no command, or a mistake that is reported in a few words. Text that
// is quoted, in a code block or invisible is no command.
func FuzzParse(f *testing.F) {
	for _, comment := range []string{
		"/test", "/retest a b", "/cancel\n", "/ok-to-test 0123abc", `/test a="b \" c" d=e f`, "/ci test", "/test branch:main",
		"/retest tag: v1", "```\n/test\n```", "> /test", "<!-- \n/test -->", "- ```\n/test",
		"/test\r\na=1\r\n/cancel", "/test \"", "/test a='", "/test ä=1", "\t/test", "1. ~~~~\n~~~\n/test",
		"<pre>\n/test\n</pre>\n/test", "<Script \n/test", "> x\n/test\n\n/test", "- > x\ny\n/test",
		"# x <?\n/test", "\t> x\n/test", "``a ` <!--``\n/test", "x <!A\n\n/test\n>",
	} {
		f.Add(comment, "", false)
		f.Add(comment, "ci", true)
	}
	f.Add("/test", "a b", false)
	f.Fuzz(func(t *testing.T, comment, prefix string, onCommit bool) {
		got, err := Parse(comment, prefix, onCommit)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || got == nil || len(err.Error()) > 1000 ||
				!cmp.Equal(got, &Command{Kind: got.Kind}) {
				t.Errorf("%+v, %v", got, err)
			}
			return
		}
		again, _ := Parse(comment, prefix, onCommit)
		if !cmp.Equal(got, again) {
			t.Errorf("%+v, and then %+v", got, again)
		}
		if got != nil {
			sound(t, got, onCommit)
		}
		for _, hidden := range []string{
			"> " + strings.NewReplacer("\n", "\n> ", "\r", " ").Replace(comment),
			"```\n" + strings.ReplaceAll(comment, "`", "x"),
			"<!-- " + strings.ReplaceAll(comment, ">", "x"),
			"<pre>\n" + strings.ReplaceAll(comment, "</", "x"),
		} {
			if found, err := Parse(hidden, prefix, onCommit); found != nil || err != nil {
				t.Errorf("%q: %+v, %v", hidden, found, err)
			}
		}
	})
}

func sound(t *testing.T, c *Command, onCommit bool) {
	t.Helper()
	for i, name := range c.Names {
		if name == "" || strings.ContainsAny(name, " \t\r\n=") ||
			len(distinct(append([]string(nil), c.Names[:i+1]...))) != i+1 {
			t.Errorf("name %q in %q", name, c.Names)
		}
	}
	for key, value := range c.Args {
		if len(value) > maxValue || strings.ContainsAny(value, "\r\n\x00") || !argumentPattern.MatchString(key+"=") {
			t.Errorf("argument %q=%q", key, value)
		}
	}
	if c.Branch != "" && c.Tag != "" || !onCommit && c.Branch+c.Tag != "" ||
		c.Kind == OkToTest && (onCommit || len(c.Names)+len(c.Args) > 0) || c.Kind != OkToTest && c.SHA != "" {
		t.Errorf("%+v", c)
	}
}
