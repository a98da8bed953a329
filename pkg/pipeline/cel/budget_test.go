// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// spent compiles and evaluates expressions one after the other until the budget is exhausted. It
// returns how many that took.
func spent(t *testing.T, budget *Budget, text func(i int) string, values Values) (int, error) {
	t.Helper()
	e, err := ForTemplates(nil)
	if err != nil {
		t.Fatal(err)
	}
	e = e.Within(budget)
	for i := range 10_000 {
		p, err := e.Compile(text(i))
		if err == nil {
			_, err = p.Evaluate(values)
		}
		if err != nil {
			return i, err
		}
	}
	return 10_000, nil
}

func TestTheExpressionsOfAnEventShareABudget(t *testing.T) {
	values := known()
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("dir/%04d.go", i))
	}
	values[Files] = ChangedFiles(paths, nil, nil, nil)
	tests := map[string]struct {
		text     func(i int) string
		from, to int
	}{
		"loops are counted": {
			func(int) string { return `files.all.all(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(b, b > 0))` }, 1, 50,
		},
		"compiling is counted": {
			func(i int) string { return fmt.Sprintf("[%d%s].size()", i, strings.Repeat(",1", 1000)) }, 1, 50,
		},
		"patterns are counted": {
			func(int) string { return strings.Repeat(`"{a,b,c,d}*x".pathChanged() || `, 100) + "false" }, 1, 50,
		},
		"lists that are turned are counted": {
			func(int) string { return `[1,2,3,4,5,6,7,8,9,10].map(f, files.all.reverse()).size() > 0` }, 1, 50,
		},
		"lists that are flattened are counted": {
			func(int) string { return `[1,2,3,4,5,6,7,8,9,10].map(f, [files.all, files.all].flatten()).size() > 0` }, 1, 50,
		},
		"lists that are sorted are counted": {
			func(int) string { return `[1,2,3,4,5,6,7,8,9,10].map(f, files.all.sort()).size() > 0` }, 1, 50,
		},
		"the least an expression costs": {
			func(int) string { return `1` }, 200, 2000,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := spent(t, NewBudget(200_000), tt.text, values)
			if n < tt.from || n > tt.to || !fault.Is(err, fault.Invalid) ||
				!strings.Contains(err.Error(), "too many steps together") {
				t.Errorf("%v after %d, want an Invalid fault after %d to %d", err, n, tt.from, tt.to)
			}
		})
	}
	if n, err := spent(t, nil, func(int) string { return `1` }, values); err != nil {
		t.Errorf("without a budget: %v after %d", err, n)
	}
}

// Two hundred pipelines of a large repository stay within what one event may cost.
func TestLargeRepositoriesStayWithinTheBudget(t *testing.T) {
	values := known()
	var paths []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("services/service-%04d/internal/handler/handler_test.go", i))
	}
	values[Files] = ChangedFiles(paths, nil, nil, nil)
	e, err := ForMatching(nil)
	if err != nil {
		t.Fatal(err)
	}
	e = e.Within(NewBudget(EventSteps))
	for i := range 200 {
		text := `event == "push" && target_branch == "main" && (` + strings.Repeat(`"libraries/{a,b}/**".pathChanged() || `,
			9) + fmt.Sprintf(`"services/x-%04d/**".pathChanged())`, i)
		p, err := e.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := p.Evaluate(values)
		if err != nil {
			t.Fatalf("pipeline %d: %v", i, err)
		}
		if why := outcome.WhyNot(); !strings.Contains(why, "is false") || !strings.Contains(why, "changed: ") {
			t.Fatalf("pipeline %d: %s", i, why)
		}
	}
}

// What a reason costs is counted as well; once nothing is left it shows no values.
func TestAReasonIsCounted(t *testing.T) {
	e, err := ForMatching(nil)
	if err != nil {
		t.Fatal(err)
	}
	budget := NewBudget(EventSteps)
	p, err := e.Within(budget).Compile(`event == "x"`)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.Evaluate(known())
	if err != nil {
		t.Fatal(err)
	}
	before := budget.left
	if got, want := outcome.WhyNot(), `event == "x" is false (event is "push")`; got != want || budget.left >= before {
		t.Errorf("%s, want %s; %d of %d are left", got, want, budget.left, before)
	}
	budget.left = 0
	loop, err := e.Compile(`[1, 2].exists(n, headers["x-event"] == "x")`)
	if err != nil {
		t.Fatal(err)
	}
	poor := *loop
	poor.environment = e.Within(budget)
	outcome.program = &poor
	if got, want := outcome.WhyNot(), `[1, 2].exists(n, headers["x-event"] == "x") is false`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestHeadersAreFoundInAnyCase(t *testing.T) {
	e, err := ForTemplates(nil)
	if err != nil {
		t.Fatal(err)
	}
	values := known()
	values[Headers] = AnyCase(map[string]string{"x-GitHub-event": "push", "X-Other": "o"})
	for _, text := range []string{
		`headers["X-GitHub-Event"] == "push"`, `headers["x-github-event"] == "push"`, `headers["X-Github-Event"] == "push"`,
		`"x-OTHER" in headers`,
		`!("x-none" in headers)`, `headers.exists(h, h == "X-Github-Event")`, `!headers.exists(h, h == "x-github-event")`,
		`size(headers) == 2`,
	} {
		p, err := e.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := p.Evaluate(values)
		if is, _ := outcome.Bool(); err != nil || !is {
			t.Errorf("%s: %t, %v", text, is, err)
		}
	}
	p, err := e.Compile(`headers`)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.Evaluate(values)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := outcome.Value(); err != nil || fmt.Sprint(got) != "map[X-Github-Event:push X-Other:o]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUndeclaredNamesThePlace(t *testing.T) {
	e, err := ForMatching([]string{"tier"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Compile("event == 'push' &&\n  tier == 'gold' || tier == 'x'")
	if err != nil {
		t.Fatal(err)
	}
	want := "2:3: tier is not defined: the param does not apply to this event"
	if err := p.Undeclared("tier"); !fault.Is(err, fault.Invalid) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
