// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var positioned = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*: [^\n]+$`)

// check requires what holds for any text: an answer soon, or an error of the author's with a
// position, on one line.
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
	if err != nil && (!fault.Is(err, fault.Invalid) || !positioned.MatchString(err.Error()) ||
		len(err.Error()) > maxMessage+32) {
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
		nested("(x)", 5000), nested("[x]", 5000), nested("{'a': x}", 2000), nested("!x", 5000), nested("-x", 5000),
		nested("x ? x : x", 9),
		nested("(x)", 90) + " == 1", nested("[x]", 90), nested("{'a':x}", 40), strings.Repeat("!", 4000) + "true",
		strings.Repeat("a?", 4000), strings.Repeat("a.", 5000) + "a",
		strings.Repeat("a[", 5000), strings.Repeat(`"a"+`, 3000) + `"a"`, strings.Repeat("true && ", 1500) + "true",
		strings.Repeat("x", 1<<20), strings.Repeat("\n", 10000) + "x",
		"[" + strings.Repeat("1,", 7000) + "1].map(x, [1,2,3,4,5,6,7,8,9].map(y, [1,2,3].map(z, x * y * z))).size() > 0",
		nested("[1,2,3,4,5,6,7,8,9,10].map(i, x)", 12), nested("body.list.all(x, x)", 6),
		nested(`[event + event + event + event].map(s, x).size() > 0 ? "a" : x`, 3),
		`[event].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)[0].size() > 1`,
		`event.matches("` + strings.Repeat("(a*)*", 500) + `")`, `event.matches("(((a{1,100}){1,100}){1,100}){1,100}")`,
		`"` + strings.Repeat("{a,b}", 60) + `".pathChanged()`, `"` + strings.Repeat("*a", 200) + `b?".pathChanged()`,
		`"` + strings.Repeat("x", 600) + `".pathChanged()`,
		strings.Repeat(`"{a,b,c,d,e,f,g,h}/**".pathChanged() || `, 200) + "false",
		"\x00", "\xff\xfe", "`", `"`, `'''`, "//", "a\u202eb", "@pathChanged('a', files)", "__x__", ".files",
		"google.protobuf.Value{}", "type(event)", "1u", "b'x'", "[][0]", "{}.x", "1/0 == 0",
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
		"patterns with many alternatives": {
			strings.Repeat(`"{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}x".pathChanged() || `, 80) + "false", steps,
		},
		"a text replaced by itself":     {`body.long.replace("a", body.long) == ""`, long},
		"a text between all characters": {`body.long.replace("", body.long, 1000) == ""`, long},
		"a text joined many times":      {`files.all.map(f, body.long).join("") == ""`, long},
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
