// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

const token = "hunter2-of-the-team"

// known is an event of which everything is known.
func known() Facts {
	none := int64(0)
	return Facts{
		Key: "event",
		Variables: map[string]string{
			"revision": "abc123", "repo_owner": "acme", "target_branch": "main", "git_tag": "", "event": "push",
			"event_type": "push",
		},
		MergedPull: &none,
		Headers:    map[string]string{"x-GitHub-Event": "push"},
		Body: map[string]any{
			"number": 1000000.0, "half": 0.5, "draft": false, "nothing": nil, "title": `a "b" {{ revision }}`, "huge": 1e21,
			"list": []any{"a", 2.0, true, nil}, "nested": map[string]any{"z": "<&>", "a": 1.0},
		},
		Files:   cel.ChangedFiles([]string{"docs/a.md"}, nil, []string{"x.go"}, nil),
		Secrets: map[SecretRef]string{{"vault", "token"}: token},
	}
}

func scope(t testing.TB, facts Facts) *Scope {
	t.Helper()
	s, err := New(facts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestText(t *testing.T) {
	params := []Param{
		{Name: "tier", Value: "gold"}, {Name: "empty"}, {Name: "repo_owner", Value: "other"},
		{Name: "body_count", Value: "7"}, {Name: "body", Value: "no"},
		{Name: "with-dash", Value: "dash"}, {Name: "secret", Secret: &SecretRef{"vault", "token"}},
		{Name: "out", Value: "x", Filter: "false"},
		{Name: "", Value: "nameless"},
	}
	tests := map[string]struct{ text, want string }{
		"no placeholder":                      {"{{ }} }} {{", "{{ }} }} {{"},
		"a variable with and without spaces":  {"{{ revision }}{{revision}}{{	revision }}", "abc123abc123abc123"},
		"an empty variable is the empty text": {"<{{ git_tag }}>", "<>"},
		"an unknown name stays as it is": {
			"{{ unknown }} {{ .Values.x }} {{x}}", "{{ unknown }} {{ .Values.x }} {{x}}",
		},
		"pull_request_number of a push without one": {"{{ pull_request_number }}", "{{ pull_request_number }}"},
		"a field of the payload":                    {"{{ body.title }}", `a "b" {{ revision }}`},
		"a value is not read again":                 {"{{ body.title }}{{ revision }}", `a "b" {{ revision }}abc123`},
		"a whole number has no exponent": {
			"{{ body.number }} {{ body.huge }} {{ body.number + 1.0 }}", "1000000 1000000000000000000000 1000001",
		},
		"a fraction":             {"{{ body.half }}", "0.5"},
		"a boolean":              {"{{ body.draft }}", "false"},
		"null is the empty text": {"<{{ body.nothing }}>", "<>"},
		"a list is JSON":         {"{{ body.list }}", `["a",2,true,null]`},
		"a mapping is JSON and keeps its characters": {"{{ body.nested }}", `{"a":1,"z":"<&>"}`},
		"a field that is not there stays": {
			"{{ body.none }} {{ body.nested.none.x }}", "{{ body.none }} {{ body.nested.none.x }}",
		},
		"a field that cannot be read stays": {
			"{{ body.[ }} {{ bodyguard }} {{ body.x( }}", "{{ body.[ }} {{ bodyguard }} {{ body.x( }}",
		},
		"an expression that starts with body":        {`{{ body.draft ? "x" : "y" }}`, "y"},
		"a header in the case of HTTP libraries":     {"{{ headers['X-Github-Event'] }}", "push"},
		"a header in the case of GitHub":             {"{{ headers['X-GitHub-Event'] }}", "push"},
		"a header in lower case":                     {`{{ headers["x-github-event"] }}`, "push"},
		"a header that is not there stays":           {`{{ headers["x"] }}`, `{{ headers["x"] }}`},
		"the changed files":                          {"{{ files.all }} {{ files.deleted }}", `["docs/a.md","x.go"] []`},
		"an expression":                              {`{{ cel: pac.target_branch == "main" ? "yes" : "no" }}`, "yes"},
		"an expression without a space":              {`{{cel:revision + "-" + target_branch}}`, "abc123-main"},
		"an expression of the payload and the files": {`{{ cel: has(body.title) && "docs/**".pathChanged() }}`, "true"},
		"an expression's list":                       {`{{ cel: files.all.filter(f, f.endsWith(".go")) }}`, `["x.go"]`},
		"an expression's number":                     {`{{ cel: 1000 * 1000 }} {{ cel: 1.5 }}`, "1000000 1.5"},
		"extensions for texts and lists":             {`{{ cel: "a-b".split("-").reverse().join("+").upperAscii() }}`, "B+A"},
		"an expression that fails is the empty text": {`<{{ cel: body.none.x }}{{ cel: 1/0 }}{{ cel: pac.none }}>`, "<>"},
		"an expression whose value is null":          {`<{{ cel: body.nothing }}>`, "<>"},
		"an expression that has no JSON":             {`<{{ cel: type(1) }}>`, "<>"},
		"variables that are declared and empty": {
			`<{{ cel: target_url + event_title + git_auth_secret + pull_request_number }}>`, "<>",
		},
		"pac has no pull_request_number without one": {`{{ cel: has(pac.pull_request_number) }}`, "false"},
		"a param": {"{{ tier }}", "gold"},
		"a param without a value is the empty text": {"<{{ empty }}>", "<>"},
		"a param goes before a variable": {
			"{{ repo_owner }} {{ cel: repo_owner + pac.repo_owner }}", "other otherother",
		},
		"a param whose name starts like the payload":     {"{{ body_count }}", "7"},
		"a param cannot be called like the payload":      {"{{ body.draft }} {{ cel: size(body) > 1 }}", "false true"},
		"a param that is no identifier":                  {`{{ with-dash }} {{ cel: pac["with-dash"] }}`, "dash dash"},
		"a param in an expression":                       {`{{ cel: tier == "gold" ? pac.tier : "" }}`, "gold"},
		"a secret":                                       {"{{ secret }}", token},
		"a secret in an expression":                      {"{{ cel: secret.upperAscii() }}", strings.ToUpper(token)},
		"a param that does not apply stays":              {"{{ out }}", "{{ out }}"},
		"a param that does not apply in pac":             {"<{{ cel: pac.out }}{{ cel: has(pac.out) }}>", "<false>"},
		"a param that does not apply and does not count": {`{{ cel: tier == "gold" || out == "x" }}`, "true"},
		"a param that does not apply in the payload's": {
			"{{ body.number == 1.0 ? out : out }}", "{{ body.number == 1.0 ? out : out }}",
		},
		"text around": {"a {{ tier }} b {{ unknown }} c {{ revision }} d", "a gold b {{ unknown }} c abc123 d"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			facts := known()
			facts.Params = params
			got, err := scope(t, facts).Text(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("Text(%s)\n%s\nwant\n%s", tt.text, got, tt.want)
			}
		})
	}
}

func TestTextRefusesWhatTheAuthorMustFix(t *testing.T) {
	tests := map[string]struct{ text, message string }{
		"an expression that cannot be read": {
			`x {{ cel: body.x == }}`, `{{ cel: body.x == }}: 1:10: Syntax error: mismatched input '<EOF>' expecting`,
		},
		"a variable that does not exist": {
			`{{ cel: 1 == 1 && taget_branch == "x" }}`,
			`{{ cel: 1 == 1 && taget_branch == "x" }}: 1:11: taget_branch is not defined`,
		},
		"a param that does not apply": {
			`{{ cel: "a" + out }}`,
			`{{ cel: "a" + out }}: 1:7: out is not defined: the param does not apply to this event`,
		},
		"an expression that takes too long": {
			`{{ cel: lists.range(1500).distinct() }}`, `: 1:1: the expression takes too many steps`,
		},
		"the same in a field of the payload": {
			`{{ body.list.map(x, lists.range(1500).distinct()) }}`, `: 1:1: the expression takes too many steps`,
		},
		"a long placeholder is cut": {
			`{{ cel: ` + strings.Repeat("ä", 100) + ` }}`, `{{ cel: ` + strings.Repeat("ä", 61) + `… }}: 1:1: `,
		},
		"a text that is too long": {
			strings.Repeat(`{{ cel: body.list.map(x, "`+strings.Repeat("x", 1000)+`") }}`, 300),
			"with its placeholders replaced the text has more than 1048576 bytes",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			facts := known()
			facts.Params = []Param{{Name: "out", Value: "x", Filter: "false"}}
			got, err := scope(t, facts).Text(tt.text)
			if got != "" || !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("%q, %v, want an Invalid fault with %q", got, err, tt.message)
			}
		})
	}
}

func TestWhatIsNotKnownIsAskedForOnlyIfSomethingDependsOnIt(t *testing.T) {
	vault := SecretRef{"vault", "token"}
	params := []Param{
		{Name: "secret", Secret: &vault},
		{Name: "deployed", Value: "d", Filter: `"deploy/**".pathChanged()`},
		{Name: "hot", Value: "h", Filter: `body.hot == true`},
		{Name: "hot", Value: "fallback"},
		{Name: "guarded", Secret: &SecretRef{"vault", "other"}, Filter: `pac.event == "pull_request" && body.x == 1`},
		{Name: "numbered", Value: "n", Filter: `pac.pull_request_number != ""`},
	}
	tests := map[string]struct {
		text string
		want Needs
	}{
		"a variable":        {"{{ revision }} {{ unknown }}", Needs{}},
		"a header":          {"{{ headers['x-github-event'] }}", Needs{}},
		"the payload":       {"{{ body.x }}", Needs{Body: true}},
		"the changed files": {"{{ files.all }}", Needs{Changed: true}},
		"all at once": {"{{ body.x }} {{ files.all }} {{ secret }} {{ pull_request_number }}",
			Needs{Body: true, Changed: true, Pulls: true, Secrets: []SecretRef{vault}}},
		"what cannot be read needs nothing": {"{{ bodyguard }} {{ body.[ }}", Needs{}},
		"a path":                            {`{{ cel: "x".pathChanged() }}`, Needs{Changed: true}},
		"the branch that is not taken needs nothing": {`{{ cel: target_branch == "main" ? "x" : body.x }}`, Needs{}},
		"a secret": {`{{ secret }}`, Needs{Secrets: []SecretRef{vault}}},
		"a secret twice": {
			`{{ secret }} {{ cel: secret + "x" }}`, Needs{Secrets: []SecretRef{vault}},
		},
		"a secret that does not count":                     {`{{ cel: target_branch == "main" || secret == "x" }}`, Needs{}},
		"a secret below pac":                               {`{{ cel: pac.secret }}`, Needs{Secrets: []SecretRef{vault}}},
		"a name that is only a field":                      {`{{ cel: body.secret }}`, Needs{Body: true}},
		"a filter that reads the changed files":            {"{{ deployed }}", Needs{Changed: true}},
		"a filter that a later entry replaces":             {"{{ hot }}", Needs{}},
		"a filter that decides without what is not known":  {"{{ guarded }}", Needs{}},
		"a filter that reads pull_request_number":          {"{{ numbered }}", Needs{Pulls: true}},
		"pull_request_number":                              {"{{ pull_request_number }}", Needs{Pulls: true}},
		"pull_request_number in an expression":             {`{{ cel: pull_request_number == "" }}`, Needs{Pulls: true}},
		"pull_request_number below pac":                    {`{{ cel: has(pac.pull_request_number) }}`, Needs{Pulls: true}},
		"an expression that fails for what is not known":   {`{{ cel: body.x.y.z }}`, Needs{Body: true}},
		"an expression that is wrong is told at once":      {"{{ revision }}", Needs{}},
		"a param that does not apply waits for the others": {`{{ cel: guarded == "x" && body.x == 1 }}`, Needs{Body: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := known()
			all.Params = params
			partly := all
			partly.Body, partly.Files, partly.MergedPull, partly.Secrets = nil, nil, nil, nil
			s := scope(t, partly)
			_, err := s.Text(tt.text)
			needs, unknown := NeedsOf(err)
			if unknown != tt.want.Any() || !unknown && err != nil {
				t.Fatalf("%v, want to be asked for %+v", err, tt.want)
			}
			if diff := cmp.Diff(tt.want, needs); diff != "" {
				t.Error(diff)
			}
			all.Secrets[SecretRef{"vault", "other"}] = "x"
			s.Learn(all)
			if _, err := s.Text(tt.text); err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("once everything is known: %v", err)
			}
		})
	}
}

func TestPullRequestNumber(t *testing.T) {
	number := int64(42)
	facts := known()
	facts.MergedPull = &number
	pull := known()
	pull.MergedPull = nil
	pull.Variables["pull_request_number"] = "7"
	for want, s := range map[string]*Scope{"42 42 42": scope(t, facts), "7 7 7": scope(t, pull)} {
		got, err := s.Text("{{ pull_request_number }} {{ cel: pull_request_number }} {{ cel: pac.pull_request_number }}")
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
