// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func named(kind Kind, names ...string) *Command { return &Command{Kind: kind, Names: names} }

func argued(kind Kind, args map[string]string, names ...string) *Command {
	return &Command{Kind: kind, Names: names, Args: args}
}

func TestParse(t *testing.T) {
	sha := strings.Repeat("0123456789", 4)
	for comment, want := range map[string]*Command{
		"/test": named(Test), "/retest": named(Retest), "/cancel": named(Cancel), "/ok-to-test": named(OkToTest),
		"/why": named(Why), "/why build": named(Why, "build"), "/whynot": nil,
		"  /test  ": named(Test), "/test\t": named(Test), "/test build": named(Test, "build"),
		"/cancel\tbuild": named(Cancel, "build"),
		"/test b a b":    named(Test, "b", "a"), "/retest build-": named(Retest, "build-"),
		"please\r\n/retest\r\nthanks": named(Retest), "one\r/retest\rtwo": named(Retest),
		"/ok-to-test 0123ABC": {Kind: OkToTest, SHA: "0123abc"}, "/ok-to-test " + sha: {Kind: OkToTest, SHA: sha},
		"please\n/ok-to-test\r\nthanks": named(OkToTest),
		"":                              nil, "thanks": nil, "test": nil, "see /test": nil, "/tests": nil, "/test-all": nil,
		"/retested build": nil,
		"/cancel-deploy":  nil, "/": nil,
		"/ok-to-test please": nil, "/ok-to-tests": nil, "/ok-to-test 012345": nil, "/ok-to-test " + sha + sha: nil,
		"/deploy /test": nil, "//test": nil, "/Test": nil, "/ test": nil,

		"/test a\n/test b\n\n/test a": named(Test, "a", "b"), "/test a\n/test": named(Test), "/test\n/test a": named(Test),
		"/ok-to-test\n/ok-to-test abcdef0": {Kind: OkToTest, SHA: "abcdef0"},

		"/test a=1 build b-c=2":            argued(Test, map[string]string{"a": "1", "b-c": "2"}, "build"),
		`/test a="1 \"2\" \\ '3' =" build`: argued(Test, map[string]string{"a": `1 "2" \\ '3' =`}, "build"),
		`/retest a=""`:                     argued(Retest, map[string]string{"a": ""}), "/test a=b=c": argued(Test,
			map[string]string{"a": "b=c"}), "/test a=1 a=1": argued(Test, map[string]string{"a": "1"}),
		"/test build\na=1\nb=\"x y\"\nthanks": argued(Test, map[string]string{"a": "1", "b": "x y"}, "build"),
		"/test\n\na=1":                        named(Test), "/test\na=1 is what I mean": named(Test),
		"a=1\n/test": named(Test),
		"/test a=" + strings.Repeat("x", maxValue): argued(Test, map[string]string{"a": strings.Repeat("x", maxValue)}),
		"/test branch:x": named(Test, "branch:x"),
	} {
		got, err := Parse(comment, "", false)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%q: %v %s", comment, err, diff)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for comment, want := range map[string]struct {
		kind    Kind
		message string
	}{
		"/test\n/retest":                           {Test, "two different commands, /test and /retest"},
		"/cancel\ntext\n/ok-to-test":               {Cancel, "two different commands, /cancel and /ok-to-test"},
		"/test a\n/cancel b":                       {Test, "two different commands"},
		"/ok-to-test abcdef0\n/ok-to-test 1234567": {OkToTest, "two commits"},
		`/test a="b`:                               {Test, "the quotes around the value of a are not closed"},
		`/test a="b\"`:                             {Test, "not closed"},
		"/test a=\"b\nc\"":                         {Test, "not closed"}, `/test a="b\`: {Test, "not closed"},
		`/test a="b"c`: {Test, "a space behind the value of a"}, "/test a=": {Test, `an empty one is written ""`},
		"/test a='b c'": {Test, "the value of a has quotes in it"},
		`/test a=b"c"`:  {Test, "has quotes in it"}, "/test ä=b": {Test, "ä=b is no argument"},
		"/test =b": {Test, "=b is no argument"}, "/test a=1 a=2": {Test, "the argument a has two values"},
		"/test x a=1\n/test y a=2": {Test, "the argument a has two values"},
		"/test\na=1\na=2":          {Test, "the argument a has two values"}, "/test\na=\"1": {Test, "not closed"},
		"/test a=1 b=1 c=1 d=1 e=1\ne=2 d=2 c=2 b=2 a=2": {Test, "the argument a has two values"}, // in each attempt
		"/test a=" + strings.Repeat("x", maxValue+1):     {Test, "has 1025 bytes, at most 1024 are read"},
		"/test a=\"b\tc\"":        {Test, "the value of a has control characters"},
		"/test a=b\x1b":           {Test, "control characters"},
		"/ok-to-test a=b":         {OkToTest, "ok-to-test takes no arguments"},
		"/ok-to-test abcdef0 a=b": {OkToTest, "takes no arguments"},
	} {
		got, err := Parse(comment, "", false)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want.message) ||
			!cmp.Equal(got, &Command{Kind: want.kind}) {
			t.Errorf("%q: %+v, %v, want Invalid with %q", comment, got, err, want.message)
		}
	}
}

func TestCommandsStandOutsideOfQuotesAndCode(t *testing.T) {
	for comment, command := range map[string]bool{
		"> /test": false, ">/test": false, "  > /test": false, "> > /test\n\n/test": true, "> somebody said\n/test": false,
		"> x\ny\n/test": false, "> x\n\t\n/test": true, ">\n/test": false, "- > x\n/test": false, "- x\n/test": true,
		"> x\n```\n```\n/test": true,
		"```\n/test\n```":      false, "```sh\n/test": false, "~~~\n/test\n```\n/test\n~~~": false,
		"````\n```\n/test\n````": false, "```\nx\n```\n/test": true, "```\nx\n  ````  \n/test": true,
		"```\nx\n``` y\n/test": false, "```\nx\n    ```\n/test": false, "```x``` is code\n/test": true,
		"   ```\n/test\n```": false, "``\n/test\n``": true,
		"- ```\n  /test\n  ```": false, "1. ```\n   /test\n   ```\n\n/test": true,
		"- 1. ```\n     /test\n     ```\n/test": true, "```\n> x\n/test\n```": false, "> ```\n/test": false,
		"> ```\n\n/test": true,
		"    /test":      false, "\t/test": false, "  \t/test": false, "   /test": true, "`/test`": false, "- /test": false,
		"* /test": false, "**/test**": false,
		"<!-- /test -->": false, "<!--\n/test\n-->": false, "<!-- x\n/test": false, "<!--\n-->/test": false,
		"<!--\n--> \n/test": true, "<!-- x --> /test": false, "<!-- x -->\n/test": true,
		"words <!-- x\n/test\n-->": false, "<!-->\n/test": true, "<!--\n```\n-->\n/test": true, "```\n<!--\n```\n/test": true,
		"/test <!--\nbuild\n-->": true, "> x <!--\n/test": false,
		"<?\n/test\n?>": false, "<![CDATA[\n/test\n]]>\n/test": true, "<!A\n/test": false, "x <?\n/test\n?>": false,
		"x <?\n/test": true, "x <!A\n/test": true, "x <![CDATA[\n/test": true, "x <!--\n/test\n\n-->": true,
		"# x <?\n/test\n?>": true, "# <?\n/test\n?>": true, "- # x <!A\n/test\n\n>": true, "x <?\n# y\n/test\n?>": true,
		"#x <?\n/test\n?>": false, "<div>\n# x <!--\n/test\n-->": false, "# <pre>\n/test": false, "#\t<?\n/test\n?>": true,
		"x <? <!--\n/test -->": false, "x <?\n<!--\n/test\n-->": false, "x <?\n\ny <?\n/test ?>": false,
		"\\<!A<?\n>\n/test\n?>": false, "\\<? x\n/test\n?>": true, "\\\\<? x\n/test\n?>": false,
		"x <?\n\n/test": true, "- ```\n```\n\n/test": false, "- ```\n\n/test": true,
		"<details>\n```\n\n```\n\n/test": false, "<div>\n/test": true, "- \t> x\n/test": false,
		"\t> x\n/test": true, "    > x\n/test": true, "x\n\t> y\n/test": true, "- x\n\t> y\n/test": false,
		"-\n\t> x\n/test": false, "- x\n\ny\n\t> z\n/test": true, "- x\n\n\t> y\n/test": false,
		"[^1]: x\n\n    > y\n/test": false, "> x\n\t> y\n/test": false, "1) x\n\n  y\n\t> z\n/test": false,
		"`` <pre> ``\n/test": true, "`` x ` <pre> ``\n/test": true, "``<pre> `\n/test": false,
		"> <!--\n\n```\n-->\n/test": false,
		"    <!--\n/test\n-->":      false, "<!--\n> x\n-->\n/test": true,
		"<pre>\n/test\n</pre>": false, "<pre>\n\n/test": false, "<PRE class=x>\n/test\n</Pre>\n/test": true,
		"<script\n/test\n</script>": false, "<style>\n/test": false, "<textarea>\n</pre>\n/test": false,
		"<pre>x</pre>\n/test": true, "<pre>x</pre><pre>\n/test": false, "<details><pre>\n\n/test\n</pre></details>": false,
		"<pre>\n```\n</pre>\n/test": true, "<pre>\n> x\n</pre>\n/test": true,
		"<pre>\n</pre>/test": false, "`<pre>` is\n/test": true, "<present>\n/test": true, "<!-- <pre> -->\n/test": true,
		"```\n<pre>\n```\n/test": true, "> <pre>\n\n/test": true, "> x\n<pre>\n\n/test": false,
	} {
		got, err := Parse(comment, "", false)
		if err != nil || (got != nil) != command || command && !cmp.Equal(got, &Command{Kind: Test}) {
			t.Errorf("%q: %+v, %v, want %t", comment, got, err, command)
		}
	}
	if got, err := Parse("/test a <!-- x --> b<!-- c\n-->d", "", false); err != nil ||
		!cmp.Equal(got.Names, []string{"a", "b"}) {
		t.Error(got, err)
	}
}

// Users paste commands from web pages, chats and phones. These may contain other characters that
// look like spaces.
func TestAnySpaceSeparatesWords(t *testing.T) {
	for name, space := range map[string]string{
		"no-break space": "\u00a0", "figure space": "\u2007", "narrow no-break space": "\u202f",
		"ideographic space": "\u3000", "thin space": "\u2009", "zero width space": "\u200b",
		"word joiner": "\u2060", "byte order mark": "\ufeff", "tab": "\t", "several": " \u00a0\u200b ",
	} {
		for comment, want := range map[string]*Command{
			"/test_": named(Test), "/test_build": named(Test, "build"), "/test _build_lint_": named(Test, "build", "lint"),
			"/cancel_": named(Cancel), "/retest_build_": named(Retest, "build"),
			"text\r\n/test_build\r\n":    named(Test, "build"),
			"/test_a=1_build_b=\"x_y\"_": argued(Test, map[string]string{"a": "1", "b": "x" + space + "y"}, "build"),
			"/test\n_a=1_\n":             argued(Test, map[string]string{"a": "1"}),
			"/ok-to-test_":               named(OkToTest), "/ok-to-test_0123abc_": {Kind: OkToTest, SHA: "0123abc"},
			">_/test":   nil,
			"see_/test": nil, "/_test": nil, "/ok-to-test_please": nil,
		} {
			if space == "\t" && (strings.Contains(comment, "\"") || strings.Contains(comment, "\n_")) {
				continue // a value holds no control characters, and a line that a tab begins is code
			}
			comment = strings.ReplaceAll(comment, "_", space)
			if got, err := Parse(comment, "", false); err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("%s: %q: %+v, %v, want %+v", name, comment, got, err, want)
			}
		}
		if space == "\t" { // in front it is code
			continue
		}
		if got, err := Parse(space+"/test", "", false); err != nil || !cmp.Equal(got, named(Test)) {
			t.Errorf("%s in front: %+v, %v", name, got, err)
		}
		if got, err := Parse(space+"/ci"+space+"test"+space+"build", "ci", false); err != nil ||
			!cmp.Equal(got, named(Test, "build")) {
			t.Errorf("%s with a prefix: %+v, %v", name, got, err)
		}
		if got, err := Parse("/test"+space+"branch:"+space+"main"+space, "", true); err != nil ||
			!cmp.Equal(got, &Command{Kind: Test, Branch: "main"}, cmpopts.EquateEmpty()) {
			t.Errorf("%s on a commit: %+v, %v", name, got, err)
		}
		if _, err := Prefix("c" + space + "i"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s in a prefix: %v, want Invalid", name, err)
		}
	}
	for _, comment := range []string{"\uff0ftest", "\u2215test", "/te\u00adst", "/test\u00b7build", "    /test\u00a0build",
		"\u00a0\t\n    /test", ">\u00a0/test"} {
		if got, err := Parse(comment, "", false); got != nil || err != nil {
			t.Errorf("%q is a command: %+v, %v", comment, got, err)
		}
	}
}

func TestPrefix(t *testing.T) {
	for setting, want := range map[string]string{"": "", "ci": "ci", "/ci": "ci", "my-ci": "my-ci", "test": "test"} {
		if got, err := Prefix(setting); got != want || err != nil {
			t.Errorf("%q: %q, %v", setting, got, err)
		}
	}
	for _, setting := range []string{"/", " ", "my ci", "ci ", "/ci\t", "ci\n", " ci"} {
		if _, err := Prefix(setting); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want Invalid", setting, err)
		}
		if got, err := Parse("/test\n/ test\n/my ci test", setting, false); got != nil || err != nil {
			t.Errorf("%q is no prefix, and there is a command: %+v, %v", setting, got, err)
		}
	}
	for _, setting := range []string{"ci", "/ci"} {
		for comment, want := range map[string]*Command{
			"/ci test": named(Test), "  /ci   test  build a=b": argued(Test, map[string]string{"a": "b"}, "build"),
			"/ci ok-to-test abcdef0": {Kind: OkToTest, SHA: "abcdef0"},
			"/test":                  nil, "/ci": nil, "/citest": nil, "/ci/test": nil, "/ci /test": nil, "ci test": nil,
			"/CI test":          nil,
			"/test\n/ci cancel": named(Cancel),
		} {
			if got, err := Parse(comment, setting, false); err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("%q with prefix %q: %+v, %v", comment, setting, got, err)
			}
		}
	}
}

func TestCommandsOnCommits(t *testing.T) {
	for comment, want := range map[string]*Command{
		"/test": named(Test), "/test branch:main": {Kind: Test, Branch: "main"},
		"/retest build branch: release/1":    {Kind: Retest, Names: []string{"build"}, Branch: "release/1"},
		"/cancel tag:v1 build":               {Kind: Cancel, Names: []string{"build"}, Tag: "v1"},
		`/test a="x:y" tag:v1`:               {Kind: Test, Args: map[string]string{"a": "x:y"}, Tag: "v1"},
		"/test a branch:x\n/test b branch:x": {Kind: Test, Names: []string{"a", "b"}, Branch: "x"}, "/ok-to-test": nil, "/why": nil,
		"/ok-to-test abcdef0": nil, "/ok-to-test\n/test": named(Test),
	} {
		if got, err := Parse(comment, "", true); err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
			t.Errorf("%q: %+v, %v", comment, got, err)
		}
	}
	for comment, want := range map[string]string{
		"/test x:y":     "x:y is neither a pipeline's name nor branch:NAME nor tag:NAME",
		"/test branch:": "no name behind branch:", "/test branch:a branch:b": "two of branch:",
		"/test branch:a tag:b": "a branch and a tag", "/test branch:a\n/test branch:b": "two branches",
		"/test tag:a\n/test branch:b": "a branch and a tag",
	} {
		if got, err := Parse(comment, "", true); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want Invalid with %q", comment, got, err, want)
		}
	}
}

func TestEventType(t *testing.T) {
	for want, c := range map[string]*Command{
		"test-all-comment": named(Test), "test-comment": named(Test, "a"), "retest-all-comment": named(Retest),
		"retest-comment":     named(Retest, "a"),
		"cancel-all-comment": named(Cancel), "cancel-comment": named(Cancel, "a"), "ok-to-test-comment": named(OkToTest),
	} {
		if got := c.EventType(); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}
