// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// known is an event with everything known.
func known() Values {
	return Values{
		Event: "push", EventType: "push", EventTitle: "a change", TargetBranch: "main", SourceBranch: "main",
		TargetURL: "https://git.example/a/b", SourceURL: "https://git.example/a/b", "param": "correct horse",
		Headers: map[string]any{"x-event": "push"},
		Body:    map[string]any{"number": 7.0, "draft": false, "list": []any{"a", "b"}, "nested": map[string]any{"name": "n"}, "nothing": nil},
		Files:   ChangedFiles([]string{"docs/a.md"}, nil, []string{"x.go", "y.go"}, nil),
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
		"files":                               {`"x".pathChanged()`, []string{Files}, []string{Files}},
		"files in a loop":                     {`files.all.exists(f, f == "x")`, []string{Files}, []string{Files}},
		"body":                                {`body.number == 7`, []string{Body, Files}, []string{Body}},
		"both":                                {`body.number == 7 && files.all.size() > 1`, []string{Body, Files}, []string{Body, Files}},
		"a false condition before it decides": {`event == "x" && body.number == 7`, []string{Body}, nil},
		"a false condition after it decides":  {`body.number == 7 && event == "x"`, []string{Body}, nil},
		"a true alternative decides":          {`body.number == 7 || event == "push"`, []string{Body}, nil},
		"the branch that is taken decides":    {`event == "push" ? true : body.draft`, []string{Body}, nil},
		"the other branch is not":             {`event == "x" ? true : body.draft`, []string{Body}, []string{Body}},
		"the presence of a field":             {`has(body.x)`, []string{Body}, []string{Body}},
		"a text that is not known":            {`param == "x"`, []string{"param"}, []string{"param"}},
		"an error that does not decide waits for what may outweigh": {`headers["none"] == "x" && body.draft`, []string{Body}, []string{Body}},
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
		"the first condition that is false":      {`true && event == "a" && event == "b"`, `event == "a" is false (event is "push")`},
		"conditions in brackets":                 {`true && (event == "push" && (source_branch == "a"))`, `source_branch == "a" is false (source_branch is "main")`},
		"alternatives are one condition":         {`event == "a" || source_branch == "b"`, `event == "a" || source_branch == "b" is false (event is "push", source_branch is "main")`},
		"every variable once":                    {`event == "a" || event == "b"`, `event == "a" || event == "b" is false (event is "push")`},
		"what is negated is true":                {`!(event == "push")`, `event == "push" is true and the expression negates it (event is "push")`},
		"a path that is negated":                 {`!"docs/**".pathChanged()`, `pathChanged("docs/**") is true and the expression negates it (changed: docs/a.md x.go y.go)`},
		"numbers and booleans of the payload":    {`body.number == 8 || body.draft`, `body.number == 8 || body.draft is false (body.number is 7, body.draft is false)`},
		"a name that a loop gives is not shown":  {`["x"].exists(event, event == "y")`, `["x"].exists(event, event == "y") is false (event is "push")`},
		"params are not shown":                   {`param == "x"`, `param == "x" is false`},
		"nothing to show":                        {`1 > 2`, `1 > 2 is false`},
		"a long condition is cut":                {`event == "` + long + `"`, `event == "` + strings.Repeat("ä", 123) + `… is false (event is "push")`},
		"a condition over lines is one line":     {"event ==\n  'a'\n", `event == "a" is false (event is "push")`},
		"no file changed":                        {`files.deleted.size() > 0`, `files.deleted.size() > 0 is false (files.deleted is no file)`},
		"the keys of the payload with a literal": {`body["nested"]["name"] == "x"`, `body["nested"]["name"] == "x" is false (body["nested"]["name"] is "n")`},
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
	for _, text := range []string{`headers[param] == "x"`, `int(param) == 1`, `duration(param) == duration("1s")`, `timestamp(param) == timestamp("x")`, `bool(param)`, `param.matches("(")`} {
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

var positioned = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*: [^\n]+$`)

// check requires what holds for any text: an answer soon, or an error of the author's with a position, on one line.
func check(t *testing.T, e *Environment, text string, values Values) {
	t.Helper()
	start := time.Now()
	p, err := e.Compile(text)
	var outcome Outcome
	if err == nil {
		outcome, err = p.Evaluate(values)
	}
	if err == nil && len(outcome.Missing) == 0 {
		if is, notBool := outcome.Bool(); notBool == nil && !is {
			if why := outcome.WhyNot(); len(why) > 2048 || strings.Contains(why, "\n") {
				t.Errorf("%.60q: a reason of %d bytes: %q", text, len(why), why)
			}
		}
		_, _ = outcome.Value()
	}
	if err != nil && (!fault.Is(err, fault.Invalid) || !positioned.MatchString(err.Error()) || len(err.Error()) > maxMessage+32) {
		t.Errorf("%.60q: %v, want an Invalid fault with a position", text, err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%.60q took %s", text, took)
	}
}

// nested is pattern with x replaced by itself, depth times.
func nested(pattern string, depth int) string {
	text := "x"
	for range depth {
		text = strings.ReplaceAll(pattern, "x", text)
	}
	return text
}

func hostile() []string {
	all := []string{
		nested("(x)", 5000), nested("[x]", 5000), nested("{'a': x}", 2000), nested("!x", 5000), nested("-x", 5000), nested("x ? x : x", 9),
		nested("(x)", 90) + " == 1", nested("[x]", 90), nested("{'a':x}", 40), strings.Repeat("!", 4000) + "true", strings.Repeat("a?", 4000), strings.Repeat("a.", 5000) + "a",
		strings.Repeat("a[", 5000), strings.Repeat(`"a"+`, 3000) + `"a"`, strings.Repeat("true && ", 1500) + "true", strings.Repeat("x", 1<<20), strings.Repeat("\n", 10000) + "x",
		"[" + strings.Repeat("1,", 7000) + "1].map(x, [1,2,3,4,5,6,7,8,9].map(y, [1,2,3].map(z, x * y * z))).size() > 0",
		nested("[1,2,3,4,5,6,7,8,9,10].map(i, x)", 12), nested("body.list.all(x, x)", 6),
		nested(`[event + event + event + event].map(s, x).size() > 0 ? "a" : x`, 3),
		`[event].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)[0].size() > 1`,
		`event.matches("` + strings.Repeat("(a*)*", 500) + `")`, `event.matches("(((a{1,100}){1,100}){1,100}){1,100}")`,
		`"` + strings.Repeat("{a,b}", 60) + `".pathChanged()`, `"` + strings.Repeat("*a", 200) + `b?".pathChanged()`, `"` + strings.Repeat("x", 600) + `".pathChanged()`,
		strings.Repeat(`"{a,b,c,d,e,f,g,h}/**".pathChanged() || `, 200) + "false",
		"\x00", "\xff\xfe", "`", `"`, `'''`, "//", "a\u202eb", "@pathChanged('a', files)", "__x__", ".files", "google.protobuf.Value{}", "type(event)", "1u", "b'x'", "[][0]", "{}.x", "1/0 == 0",
		`body == body && files == files`, `has(has(body.x))`, `body.all(k, body.all(l, body.all(m, k == l)))`,
	}
	return all
}

func TestHostileExpressionsEndSoon(t *testing.T) {
	values := known()
	var paths []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("directory/%04d/%s", i, strings.Repeat("a", 200)))
	}
	values[Files] = ChangedFiles(paths, nil, nil, nil)
	matching, err := ForMatching(nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := ForTemplates(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range slices.Concat(hostile(), []string{
		strings.Repeat(`files.all.exists(f, f.startsWith("x")) || `, 300) + "false",
		`files.all.all(a, files.all.all(b, files.all.all(c, a != b || b != c)))`,
		`files.all.map(a, files.all.map(b, a + b)).size() > 0`,
	}) {
		check(t, matching, text, values)
		check(t, templates, text, values)
	}
}

func TestWhatIsTooMuchIsRefusedAndSaysSo(t *testing.T) {
	templates, err := ForTemplates(nil)
	if err != nil {
		t.Fatal(err)
	}
	values := known()
	values[Body] = map[string]any{"long": strings.Repeat("a", 64<<10)}
	values[Files] = ChangedFiles(slices.Collect(func(yield func(string) bool) {
		for i := range 3000 {
			if !yield(fmt.Sprintf("dir/%04d.go", i)) {
				return
			}
		}
	}), nil, nil, nil)
	const steps, long = "too many steps", "more than 1048576 bytes"
	tests := map[string]struct{ text, message string }{
		"a loop in a loop in a loop":             {`files.all.all(a, files.all.all(b, files.all.all(c, a != "")))`, steps},
		"a loop in a loop":                       {`files.all.map(a, files.all.map(b, a + b)).size() > 0`, steps},
		"a text that doubles":                    {`[body.long].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)[0] == ""`, steps},
		"comparing large values again and again": {`files.all.all(a, body == body)`, steps},
		"patterns with many alternatives":        {strings.Repeat(`"{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}x".pathChanged() || `, 20) + "false", steps},
		"a text replaced by itself":              {`body.long.replace("a", body.long) == ""`, long},
		"a text between all characters":          {`body.long.replace("", body.long, 1000) == ""`, long},
		"a text joined many times":               {`files.all.map(f, body.long).join("") == ""`, long},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := templates.Compile(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Evaluate(values)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("%v, want an Invalid fault with %q", err, tt.message)
			}
		})
	}
	for _, text := range []string{
		`files.all.exists(f, f.matches("^(src|cmd|pkg)/.*[.](go|mod|sum)$")) || files.all.exists(f, f.matches("^docs/.*")) || event == "push"`,
		`["a", "b"].join("+").replace("+", "-") == "a-b" && "aaa".replace("a", "b", 2) == "bba" && [].join() == "" && ["", "x"].join(",") == ",x"`,
		strings.Repeat(`"dir/**".pathChanged() && `, 100) + "true",
	} {
		p, err := templates.Compile(strings.ReplaceAll(text, ` || event == "push"`, " || true"))
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := p.Evaluate(values)
		if is, _ := outcome.Bool(); err != nil || !is {
			t.Errorf("%.80s: %t, %v, want true", text, is, err)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range append(hostile(),
		`event == "push" && target_branch == "main"`, `"docs/**".pathChanged() && !"*.md".pathChanged()`,
		`body.list.exists(l, l == "a") ? headers["x-event"].startsWith("p") : files.all.size() > 1`,
		`event_title.matches("^a (change|fix)$")`, `has(body.nested.name) && int(body.number) + 1 == 8`) {
		if len(seed) < 2048 {
			f.Add(seed, true)
		}
	}
	matching, err := ForMatching([]string{"param"})
	if err != nil {
		f.Fatal(err)
	}
	templates, err := ForTemplates([]string{"param"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, all bool) {
		values := known()
		if !all {
			delete(values, Body)
			delete(values, Files)
		}
		check(t, matching, text, values)
		check(t, templates, text, values)
	})
}
