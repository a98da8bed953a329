// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinks(t *testing.T) {
	type links struct{ Console, Run, Namespace, Task string }
	for name, test := range map[string]struct {
		data map[string]string
		task string
		want links
	}{
		"without a console there is no link": {},
		"a Tekton Dashboard": {
			data: map[string]string{"tekton-dashboard-url": "https://dash.example.com/"},
			want: links{
				"Tekton Dashboard", "https://dash.example.com/#/namespaces/ci/pipelineruns/run-1",
				"https://dash.example.com/#/namespaces/ci/pipelineruns",
				"https://dash.example.com/#/namespaces/ci/pipelineruns/run-1?pipelineTask=build",
			},
		},
		"a custom console comes before the dashboard, and templates that are not set lead to its own URL": {
			data: map[string]string{
				"tekton-dashboard-url": "https://dash.example.com", "custom-console-url": "https://lens.example.com",
			},
			want: links{"lens.example.com", "https://lens.example.com", "https://lens.example.com", "https://lens.example.com"},
		},
		"a custom console's templates are filled": {
			data: map[string]string{
				"custom-console-name": "Lens", "custom-console-url": "https://lens.example.com",
				"custom-console-url-pr-details": "https://lens.example.com/{{ namespace }}/{{pr}}",
				"custom-console-url-pr-tasklog": "https://lens.example.com/{{namespace}}/{{ pr }}/{{ task }}",
				"custom-console-url-namespace":  "https://lens.example.com/{{ namespace }}",
			},
			want: links{
				"Lens", "https://lens.example.com/ci/run-1", "https://lens.example.com/ci",
				"https://lens.example.com/ci/run-1/build",
			},
		},
		"a template with a variable that is not known here falls back": {
			data: map[string]string{
				"custom-console-url":            "https://lens.example.com",
				"custom-console-url-namespace":  "https://lens.example.com/{{ team }}",
				"custom-console-url-pr-details": "https://lens.example.com/{{ pr }}",
				"custom-console-url-pr-tasklog": "https://lens.example.com/{{ pr }}#{{ pod }}",
			},
			want: links{
				"lens.example.com", "https://lens.example.com/run-1", "https://lens.example.com", "https://lens.example.com/run-1",
			},
		},
		"a value is data": {
			data: map[string]string{
				"custom-console-url":            "https://lens.example.com",
				"custom-console-url-pr-tasklog": "https://lens.example.com/{{ task }}",
			},
			task: "../a b?x#y",
			want: links{
				"lens.example.com", "https://lens.example.com", "https://lens.example.com",
				"https://lens.example.com/..%2Fa%20b%3Fx%23y",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(test.data)
			if err != nil {
				t.Fatal(err)
			}
			task := test.task
			if task == "" {
				task = "build"
			}
			l := c.Console.Links("ci", "run-1")
			got := links{l.ConsoleName, l.Run, l.Namespace, l.Task(task)}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if another := c.Console.Links("ci", "run-2").Run; (l.Other == nil) != (l.Run == "") ||
				l.Other != nil && l.Other("run-2") != another {
				t.Errorf("another run's link is not %q", another)
			}
		})
	}
}
