// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// hostile is an event whose values would be variables of Tekton and the kubelet (S33).
func hostile() Facts {
	facts := known()
	facts.Variables["title"], facts.Variables["dollar"] = "$(params.token)", "a$"
	facts.Variables["bracket"], facts.Variables["empty"] = "(PATH) b", ""
	facts.Variables["twice"] = "$$(context.pipelineRun.name)$($(x))"
	facts.Body["labels"] = []any{"$(tasks.a.results.b)", map[string]any{"$(k)": "$(v)"}, "plain"}
	facts.Params = []Param{
		{Name: "set", Value: "$(workspaces.source.path)"}, {Name: "password", Secret: &SecretRef{"vault", "token"}},
	}
	return facts
}

// S33: what an event says becomes no variable of Tekton or the kubelet.
func TestPlacedValuesAreNoVariables(t *testing.T) {
	for sentence, c := range map[string]struct{ text, want string }{
		"the title of a commit":     {"echo '{{ title }}'", "echo '$ (params.token)'"},
		"twice, and within another": {"{{ twice }}", "$$ (context.pipelineRun.name)$ ($ (x))"},
		"a custom param":            {"{{ set }}", "$ (workspaces.source.path)"},
		"an expression":             {`{{ cel: body.labels[0] + "!" }}`, "$ (tasks.a.results.b)!"},
		"a list as text": {
			"x {{ body.labels }}", `x ["$ (tasks.a.results.b)",{"$ (k)":"$ (v)"},"plain"]`,
		},
		"the author's dollar and a value":         {"${{ bracket }}", "$ (PATH) b"},
		"a value and the author's bracket":        {"{{ dollar }}(PATH)", "a$ (PATH)"},
		"two values":                              {"{{ dollar }}{{ bracket }}", "a$ (PATH) b"},
		"nothing between two parts of the author": {"${{ empty }}(PATH)", "$ (PATH)"},
		"the author's own variables stay": {
			"$(params.x) {{ revision }} $(params.{{ revision }})", "$(params.x) abc123 $(params.abc123)",
		},
		"dollars and brackets alone are no trouble": {
			"{{ dollar }} {{ bracket }} ${{ revision }} ({{ revision }})", "a$ (PATH) b $abc123 (abc123)",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			left := 1000
			got, err := scope(t, hostile()).Place(c.text, &left)
			if err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
	left := 1000
	node, err := scope(t, hostile()).PlaceNode("{{ body.labels }}", &left)
	if diff := cmp.Diff([]any{"$ (tasks.a.results.b)", map[string]any{"$ (k)": "$ (v)"}, "plain"}, node); err != nil ||
		diff != "" {
		t.Errorf("a node: %v, %s", err, diff)
	}
}

// What decides is no part of a manifest: it is compared as it is.
func TestTextsThatDecideAreNotChanged(t *testing.T) {
	got, err := scope(t, hostile()).Text("{{ title }} {{ dollar }}{{ bracket }}")
	if err != nil || got != "$(params.token) a$(PATH) b" {
		t.Errorf("%q, %v", got, err)
	}
}

// A password with a blank in it is another one: a secret that holds a variable is refused, without
// being told.
func TestASecretThatHoldsAVariableIsRefused(t *testing.T) {
	for value, refused := range map[string]bool{"hunter$(PATH)2": true, "$(params.x)": true, "a$(b": false,
		"a$ (b)": false, "$( )": false} {
		for _, text := range []string{"{{ password }}", "x {{ password }}", `{{ cel: "x" + password }}`} {
			facts := hostile()
			facts.Secrets = map[SecretRef]string{{"vault", "token"}: value}
			left := 1000
			s := scope(t, facts)
			_, err := s.Place(text, &left)
			_, nodeErr := s.PlaceNode(text, &left)
			if fault.Is(err, fault.Invalid) != refused || fault.Is(nodeErr, fault.Invalid) != refused {
				t.Errorf("%q in %s: %v and %v, want it refused: %t", value, text, err, nodeErr, refused)
			}
			if err != nil && strings.Contains(err.Error(), value) {
				t.Errorf("%q tells the secret", err)
			}
		}
	}
}
