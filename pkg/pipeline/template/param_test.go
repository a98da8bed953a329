// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

func TestWhichEntryOfAParamCounts(t *testing.T) {
	const yes, no, fails = `pac.event == "push"`, `event_type == "x"`, `body.none.x == 1`
	vault := &SecretRef{"vault", "token"}
	tests := map[string]struct {
		entries []Param
		want    string
	}{
		"the last without a filter": {[]Param{{Value: "a"}, {Value: "b"}}, "b"},
		"the first whose filter is true": {
			[]Param{{Value: "a", Filter: no}, {Value: "b", Filter: yes}, {Value: "c", Filter: yes}}, "b",
		},
		"none":                                 {[]Param{{Value: "a", Filter: no}}, "{{ p }}"},
		"a filter that fails is false":         {[]Param{{Value: "a", Filter: fails}}, "{{ p }}"},
		"a filter that is not a condition":     {[]Param{{Value: "a", Filter: `"x"`}}, "{{ p }}"},
		"a filter replaces what is before it":  {[]Param{{Value: "a"}, {Value: "b", Filter: yes}}, "b"},
		"a false filter does not":              {[]Param{{Value: "a"}, {Value: "b", Filter: no}}, "a"},
		"no filter replaces what is before it": {[]Param{{Value: "a", Filter: yes}, {Value: "b"}}, "b"},
		"after that filters do not count": {
			[]Param{{Value: "a", Filter: yes}, {Value: "b"}, {Value: "c", Filter: yes}}, "b",
		},
		"the value goes before the secret": {[]Param{{Value: "a", Secret: vault}}, "a"},
		"the secret without a value":       {[]Param{{Secret: vault}}, token},
		"a filter over the payload":        {[]Param{{Value: "a", Filter: `body.number > 5.0`}}, "a"},
		"a filter over the changed files":  {[]Param{{Value: "a", Filter: `"docs/**".pathChanged()`}}, "a"},
		"a filter sees no headers":         {[]Param{{Value: "a", Filter: `size(headers) == 0`}}, "a"},
		"a filter sees standard variables": {
			[]Param{{Value: "a", Filter: `target_branch == "main" && has(pac.revision)`}}, "a",
		},
		"a filter's first mistake is not another": {[]Param{{Value: "a", Filter: fails}, {Value: "b", Filter: yes}}, "b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			facts := known()
			for i := range tt.entries {
				tt.entries[i].Name = "p"
			}
			facts.Params = tt.entries
			got, err := scope(t, facts).Text("{{ p }}")
			if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestParamsThatTheOwnerMustFix(t *testing.T) {
	tests := map[string]struct {
		param   Param
		message string
	}{
		"a filter that cannot be read": {
			Param{Name: "tier", Filter: "pac.event ==", Field: "spec.params[2]"},
			"spec.params[2] (tier): the filter is not a valid expression: 1:13: Syntax error",
		},
		"a filter that reads another param": {
			Param{Name: "tier", Filter: `tier == "x"`, Field: "spec.params[0]"},
			"spec.params[0] (tier): the filter is not a valid expression: 1:1: tier is not defined",
		},
		"a secret without a key": {
			Param{Name: "tier", Secret: &SecretRef{Name: "vault"}, Field: "spec.params[1]"},
			"spec.params[1] (tier): secret_ref needs a name and a key",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			facts := known()
			facts.Params = []Param{tt.param}
			_, err := New(facts)
			if !fault.Is(err, fault.Operator) || !strings.HasPrefix(err.Error(), tt.message) {
				t.Errorf("%v, want an Operator fault with %q", err, tt.message)
			}
		})
	}
	facts := known()
	facts.Params = []Param{{Name: "tier", Value: "v", Secret: &SecretRef{Name: "vault"}}}
	if _, err := New(facts); err != nil {
		t.Errorf("a secret that is not read: %v", err)
	}
}

func TestParamsOfAnnotations(t *testing.T) {
	facts := known()
	facts.Secrets = nil
	facts.Params = []Param{
		{Name: "tier", Value: "gold"}, {Name: "secret", Secret: &SecretRef{"vault", "token"}},
		{Name: "out", Value: "x", Filter: "false"},
		{Name: "unsure", Value: "u", Filter: "body.x == 1"}, {Name: "event", Value: "ignored"},
	}
	facts.Body = nil
	p := scope(t, facts).Params()
	tests := map[string]struct {
		text    string
		values  cel.Values
		missing []string
		needs   Needs
		message string
	}{
		"one that is known": {`tier == "gold"`, cel.Values{"tier": "gold"}, nil, Needs{}, ""},
		"one that is not": {
			`secret == "x"`, cel.Values{}, []string{"secret"}, Needs{Secrets: []SecretRef{{"vault", "token"}}}, "",
		},
		"one that does not apply": {`out == "x"`, cel.Values{}, []string{"out"}, Needs{},
			"1:1: out is not defined: the param does not apply to this event"},
		"one that may not apply": {`unsure == "x"`, cel.Values{}, []string{"unsure"}, Needs{Body: true}, ""},
		"beside the payload":     {`out == "x" && body.y`, cel.Values{}, []string{"body", "out"}, Needs{Body: true}, ""},
		"beside the changed files": {
			`out == "x" && "x".pathChanged()`, cel.Values{}, []string{"files", "out"}, Needs{Changed: true}, "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := p.Compile(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			values, err := p.Values(program)
			if err != nil {
				t.Fatal(err)
			}
			got := cel.Values{}
			values.Put(got)
			if diff := cmp.Diff(tt.values, got); diff != "" {
				t.Error(diff)
			}
			if tt.missing == nil {
				return
			}
			err = values.Missing(tt.missing)
			needs, _ := NeedsOf(err)
			if diff := cmp.Diff(tt.needs, needs); diff != "" {
				t.Error(diff)
			}
			if tt.message != "" && err.Error() != tt.message {
				t.Errorf("%v, want %s", err, tt.message)
			}
		})
	}
}

func TestTheZeroParamsAreNone(t *testing.T) {
	var p Params
	program, err := p.Compile(`event == "push" && body.x`)
	if err != nil {
		t.Fatal(err)
	}
	values, err := p.Values(program)
	if err != nil {
		t.Fatal(err)
	}
	if needs, _ := NeedsOf(values.Missing([]string{"body"})); !needs.Body {
		t.Errorf("needs %+v", needs)
	}
	//nolint:errorlint // it is this very error
	if err := p.Spend(1 << 40); err != nil || p.Mask("x") != "x" || p.Conceal(ErrTooLong) != ErrTooLong {
		t.Errorf("%v", err)
	}
}
