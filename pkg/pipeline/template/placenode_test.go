// SPDX-License-Identifier: Apache-2.0

package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

func TestWith(t *testing.T) {
	facts := known()
	facts.Body = nil
	event := scope(t, facts)
	first, second := event.With("git_auth_secret", "one"), event.With("git_auth_secret", "two")
	second.Learn(Facts{Body: map[string]any{"x": "learnt"}})
	for want, s := range map[string]*Scope{"{{ git_auth_secret }}  learnt": event, "one one learnt": first,
		"two two learnt": second} {
		got, err := s.Text("{{ git_auth_secret }} {{ cel: git_auth_secret }} {{ body.x }}")
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestPlaceNode(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"a list":                        {"{{ body.list }}", []any{"a", 2.0, true, nil}},
		"a mapping":                     {"{{ body.nested }}", map[string]any{"z": "<&>", "a": 1.0}},
		"a number":                      {"{{ body.number }}", 1000000.0},
		"a boolean":                     {"{{ body.draft }}", false},
		"null":                          {"{{ body.nothing }}", nil},
		"a text":                        {"{{ body.title }}", `a "b" {{ revision }}`},
		"a variable is a text":          {"{{ revision }}", "abc123"},
		"an unknown name stays":         {"{{ unknown }}", "{{ unknown }}"},
		"what fails stays":              {"{{ body.none }}", "{{ body.none }}"},
		"an expression that fails":      {"{{ cel: body.none }}", ""},
		"two placeholders are a text":   {"{{ body.number }}{{ body.number }}", "10000001000000"},
		"a placeholder beside a text":   {"{{ body.number }}x", "1000000x"},
		"braces beside the placeholder": {"{{{ body.number }}}", "{{{ body.number }}}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			left := 1000
			got, err := scope(t, known()).PlaceNode(tt.text, &left)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	left := 10
	_, err := scope(t, known()).PlaceNode("{{ body.list }}", &left)
	if err != ErrTooLong { //nolint:errorlint // it is this very error
		t.Errorf("%v, want ErrTooLong", err)
	}
}

func TestTheBudgetIsTheEventsAndNotTheExpressions(t *testing.T) {
	facts := known()
	facts.Budget = cel.NewBudget(1000)
	s := scope(t, facts)
	var err error
	for _, text := range []string{"{{ cel: 1 + 1 }}", "{{ body.number }}", "{{ cel: revision + revision + revision }}",
		"{{ body.draft }}"} {
		if _, err = s.Text(text); err != nil {
			break
		}
	}
	if !fault.Is(err, fault.Invalid) || fault.Of(err).Reason != cel.ReasonSteps {
		t.Errorf("%v, want %s", err, cel.ReasonSteps)
	}
	if _, err := s.Text("{{ body.list }}"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a field of the payload: %v, want the same", err)
	}
	if got, err := s.Text("{{ revision }}"); err != nil || got != "abc123" {
		t.Errorf("a variable costs nothing: %q, %v", got, err)
	}
	if _, err := s.With("git_auth_secret", "x").Params().Compile("1 == 1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("matching: %v, want the same", err)
	}
}
