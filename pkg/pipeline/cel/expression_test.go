// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// known is an event with everything known.
func known() Values {
	return Values{
		Event: "push", EventType: "push", EventTitle: "a change", TargetBranch: "main", SourceBranch: "main",
		TargetURL: "https://git.example/a/b", SourceURL: "https://git.example/a/b", "param": "correct horse",
		Headers: map[string]any{"x-event": "push"},
		Body: map[string]any{
			"number": 7.0, "draft": false, "list": []any{"a", "b"}, "nested": map[string]any{"name": "n"}, "nothing": nil,
		},
		Files: ChangedFiles([]string{"docs/a.md"}, nil, []string{"x.go", "y.go"}, nil),
	}
}

func compiled(t testing.TB, text string) *Program {
	t.Helper()
	e, err := ForMatching([]string{"param"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEvaluateAsksForWhatItDependsOn(t *testing.T) {
	tests := map[string]struct {
		text    string
		without []string
		missing []string
	}{
		"nothing is asked for when nothing is missing": {`"x".pathChanged()`, nil, nil},
		"files":           {`"x".pathChanged()`, []string{Files}, []string{Files}},
		"files in a loop": {`files.all.exists(f, f == "x")`, []string{Files}, []string{Files}},
		"body":            {`body.number == 7`, []string{Body, Files}, []string{Body}},
		"both": {
			`body.number == 7 && files.all.size() > 1`, []string{Body, Files}, []string{Body, Files},
		},
		"a false condition before it decides": {`event == "x" && body.number == 7`, []string{Body}, nil},
		"a false condition after it decides":  {`body.number == 7 && event == "x"`, []string{Body}, nil},
		"a true alternative decides":          {`body.number == 7 || event == "push"`, []string{Body}, nil},
		"the branch that is taken decides":    {`event == "push" ? true : body.draft`, []string{Body}, nil},
		"the other branch is not":             {`event == "x" ? true : body.draft`, []string{Body}, []string{Body}},
		"the presence of a field":             {`has(body.x)`, []string{Body}, []string{Body}},
		"a text that is not known":            {`param == "x"`, []string{"param"}, []string{"param"}},
		"an error that does not decide waits for what may outweigh": {
			`headers["none"] == "x" && body.draft`, []string{Body}, []string{Body},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			values := known()
			for _, name := range tt.without {
				delete(values, name)
			}
			got, err := compiled(t, tt.text).Evaluate(values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.missing, got.Missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhyNot(t *testing.T) {
	long := strings.Repeat("ä", 200)
	tests := map[string]struct{ text, want string }{
		"the first condition that is false": {
			`true && event == "a" && event == "b"`, `event == "a" is false (event is "push")`,
		},
		"conditions in brackets": {
			`true && (event == "push" && (source_branch == "a"))`, `source_branch == "a" is false (source_branch is "main")`,
		},
		"alternatives are one condition": {`event == "a" || source_branch == "b"`,
			`event == "a" || source_branch == "b" is false (event is "push", source_branch is "main")`},
		"every variable once": {
			`event == "a" || event == "b"`, `event == "a" || event == "b" is false (event is "push")`,
		},
		"what is negated is true": {
			`!(event == "push")`, `event == "push" is true and the expression negates it (event is "push")`,
		},
		"a path that is negated": {`!"docs/**".pathChanged()`,
			`pathChanged("docs/**") is true and the expression negates it (changed: docs/a.md x.go y.go)`},
		"numbers and booleans of the payload": {
			`body.number == 8 || body.draft`, `body.number == 8 || body.draft is false (body.number is 7, body.draft is false)`,
		},
		"a name that a loop gives is not shown": {
			`["x"].exists(event, event == "y")`, `["x"].exists(event, event == "y") is false (event is "push")`,
		},
		"params are not shown": {`param == "x"`, `param == "x" is false`},
		"nothing to show":      {`1 > 2`, `1 > 2 is false`},
		"a long condition is cut": {
			`event == "` + long + `"`, `event == "` + strings.Repeat("ä", 123) + `… is false (event is "push")`,
		},
		"a condition over lines is one line": {"event ==\n  'a'\n", `event == "a" is false (event is "push")`},
		"no file changed": {
			`files.deleted.size() > 0`, `files.deleted.size() > 0 is false (files.deleted is no file)`,
		},
		"the keys of the payload with a literal": {
			`body["nested"]["name"] == "x"`, `body["nested"]["name"] == "x" is false (body["nested"]["name"] is "n")`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			outcome, err := compiled(t, tt.text).Evaluate(known())
			if err != nil {
				t.Fatal(err)
			}
			if is, err := outcome.Bool(); is || err != nil {
				t.Fatalf("%t, %v, want false", is, err)
			}
			if got := outcome.WhyNot(); got != tt.want {
				t.Errorf("WhyNot\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestPrivateValuesReachNoMessage(t *testing.T) {
	for _, text := range []string{`headers[param] == "x"`, `int(param) == 1`, `duration(param) == duration("1s")`,
		`timestamp(param) == timestamp("x")`, `bool(param)`, `param.matches("(")`} {
		_, err := compiled(t, text).Evaluate(known())
		if err == nil || strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: %v, want an error without the value", text, err)
		}
	}
}

func TestMentionsAndQuotes(t *testing.T) {
	tests := []struct {
		text             string
		mentions, quotes bool
	}{
		{`body.labels.size() > 0`, true, false},
		{`body["labels"][0] == "refs/heads/x"`, true, true},
		{`event == "labels"`, false, false},
		{`["x"].exists(x, x == "labels" && target_branch.startsWith("refs/heads/"))`, false, true},
		{`"refs/heads/x".pathChanged()`, false, true},
	}
	for _, tt := range tests {
		p := compiled(t, tt.text)
		if got := p.Mentions("labels"); got != tt.mentions {
			t.Errorf("%s: Mentions = %t", tt.text, got)
		}
		if got := p.Quotes("refs/heads/"); got != tt.quotes {
			t.Errorf("%s: Quotes = %t", tt.text, got)
		}
	}
	if !compiled(t, `"x".pathChanged()`).Mentions(Files) {
		t.Error("pathChanged reads the changed files")
	}
}

func TestTemplates(t *testing.T) {
	e, err := ForTemplates([]string{"revision", "body", "not-one"})
	if err != nil {
		t.Fatal(err)
	}
	values := known()
	values["revision"], values[PAC] = "abc", map[string]any{"repo_owner": "acme"}
	tests := []struct {
		text string
		want any
	}{
		{`body.number`, 7.0},
		{`body.nested`, map[string]any{"name": "n"}},
		{`body.list`, []any{"a", "b"}},
		{`body.nothing`, nil},
		{`body.draft ? "yes" : "no"`, "no"},
		{`headers["x-event"]`, "push"},
		{`files.all`, []any{"docs/a.md", "x.go", "y.go"}},
		{`files.added.size() + 1`, 2.0},
		{`pac.repo_owner + "/" + revision`, "acme/abc"},
		{`"a-b".split("-").reverse().join("+").upperAscii()`, "B+A"},
		{`lists.range(3)`, []any{0.0, 1.0, 2.0}},
		{`has(pac.nothing)`, false},
	}
	for _, tt := range tests {
		p, err := e.Compile(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		outcome, err := p.Evaluate(values)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got, err := outcome.Value()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.text, err, diff)
		}
	}
	if _, err := e.Compile(`event == "push"`); !fault.Is(err, fault.Invalid) {
		t.Errorf("a variable of conditions: %v, want an Invalid fault", err)
	}
	p, err := e.Compile(`lists.range(1000000).size() > 1`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Evaluate(values); !fault.Is(err, fault.Invalid) {
		t.Errorf("a list that is too long: %v, want an Invalid fault", err)
	}
}
