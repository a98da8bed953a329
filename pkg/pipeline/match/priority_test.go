// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

func TestPriority(t *testing.T) {
	t.Parallel()
	body := func(ev Event) Event {
		ev.Body = map[string]any{"number": 7.0, "labels": []any{map[string]any{"name": "urgent"}}}
		return ev
	}
	for name, test := range map[string]struct {
		event     Event
		text      string
		want      int32
		told, err string
	}{
		"a number": {event: push("refs/heads/main"), text: "7", want: 7},
		"a condition": {
			event: push("refs/heads/main"), text: `event == "push" && target_branch == "main" ? 50 : -5`, want: 50,
		},
		"of another event": {
			event: pull("main"), text: `event == "push" && target_branch == "main" ? 50 : -5`, want: -5,
		},
		"the payload": {
			event: body(pull("main")), text: `body.labels.exists(l, l.name == "urgent") ? 10 : 0`, want: 10,
		},
		"too much": {
			event: push("refs/heads/main"), text: "101", want: 100, told: "it is beyond 100",
		},
		"too little": {
			event: push("refs/heads/main"), text: "-9223372036854775807", want: -100, told: "it is beyond -100",
		},
		"without a sign": {
			event: push("refs/heads/main"), text: "18446744073709551615u", want: 100, told: "counts as that",
		},
		"true or false": {
			event: push("refs/heads/main"), text: `event == "push"`, err: "1:1: the expression does not give a whole number",
		},
		"a fraction": {
			event: push("refs/heads/main"), text: "1.5", err: "does not give a whole number",
		},
		"a number of JSON": {
			event: body(pull("main")), text: "body.number", err: "the expression is a double, it must be a whole number",
		},
		"one that is made whole": {event: body(pull("main")), text: "int(body.number)", want: 7},
		"as long as it may be": {
			event: push("refs/heads/main"), text: "7" + strings.Repeat(" ", 4095), want: 7,
		},
		"longer": {
			event: push("refs/heads/main"), text: "7" + strings.Repeat(" ", 4096), err: "more than 4096 bytes",
		},
		"no expression": {event: push("refs/heads/main"), text: "1 +", err: "1:4: "},
		"a name that is not known": {
			event: push("refs/heads/main"), text: "urgency", err: "urgency is not defined",
		},
		"a key that is not there": {
			event: body(pull("main")), text: "body.head.size() > 3 ? 1 : 0", err: "no such key: head",
		},
		"a division by zero": {event: push("refs/heads/main"), text: "1 / 0", err: "division by zero"},
		"too many steps": {event: push("refs/heads/main"), text: strings.Repeat(
			"[1,2,3,4,5,6,7,8,9,10].map(x, ", 6) + "1" + strings.Repeat(")", 6) + ".size()", err: "takes too many steps"},
		"what has no part in it is not needed": {
			event: pull("main"), text: `event == "push" ? int(body.number) : 3`, want: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, told, err := Priority(test.event, test.text)
			if test.err != "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.err) || got != 0 {
					t.Errorf("%d, error %v, want %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != test.want || !strings.Contains(told, test.told) || test.told == "" && told != "" {
				t.Errorf("%d %q %v, want %d %q", got, told, err, test.want, test.told)
			}
		})
	}
	_, _, err := Priority(pull("main"), `body.number > 3.0 ? 1 : 0`)
	if needs, unknown := template.NeedsOf(err); !unknown || !needs.Body {
		t.Errorf("a payload that is not known: %v", err)
	}
}

// What a Repository says is checked before there is an event: the same mistakes are found but for
// what only an event shows.
func TestCheckPriority(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"7" + strings.Repeat(" ", 4096): "more than 4096 bytes",
		`body.urgent ? 1 : 0`:           "", `team == "a" ? 1 : 0`: "", "int(team)": "", "body.number": "",
		"true": "whole number", "1 +": "1:4: ", "urgency": "urgency is not defined",
	} {
		err := CheckPriority(text, []string{"team"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
