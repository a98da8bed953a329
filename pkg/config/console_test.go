// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtesting "knative.dev/pkg/logging/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const (
	dash = "https://dash.example.com"
	lens = "https://lens.example.com"
)

// links are the links of one run, without the functions.
type links struct{ Console, Run, Namespace, Task, Archive string }

func linksOf(c Console, run v1alpha1.Run, task status.TaskLink) links {
	l := c.Links(run)
	return links{l.ConsoleName, l.Run, l.Namespace, l.Task(task), l.Archive}
}

func TestLinks(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string]string
		run  v1alpha1.Run
		task status.TaskLink
		want links
	}{
		"without a console there is no link": {},
		"a Tekton Dashboard": {
			data: map[string]string{"tekton-dashboard-url": dash + "/"},
			want: links{
				"Tekton Dashboard", dash + "/#/namespaces/ci/pipelineruns/run-1", dash + "/#/namespaces/ci/pipelineruns",
				dash + "/#/namespaces/ci/pipelineruns/run-1?pipelineTask=build", "",
			},
		},
		"a custom console comes before the dashboard, and templates that are not set lead to its own URL": {
			data: map[string]string{"tekton-dashboard-url": dash, "custom-console-url": lens},
			want: links{"lens.example.com", lens, lens, lens, ""},
		},
		"a custom console's templates are filled": {
			data: map[string]string{
				"custom-console-name": "Lens", "custom-console-url": lens,
				"custom-console-url-pr-details": lens + "/{{ namespace }}/{{pr}}",
				"custom-console-url-pr-tasklog": lens + "/{{namespace}}/{{ pr }}/{{ task }}",
				"custom-console-url-namespace":  lens + "/{{ namespace }}",
			},
			want: links{"Lens", lens + "/ci/run-1", lens + "/ci", lens + "/ci/run-1/build", ""},
		},
		"a template with a variable that is not known here falls back": {
			data: map[string]string{
				"custom-console-url":            lens,
				"custom-console-url-namespace":  lens + "/{{ team }}",
				"custom-console-url-pr-details": lens + "/{{ pr }}",
				"custom-console-url-pr-tasklog": lens + "/{{ pr }}#{{ uid }}",
			},
			want: links{"lens.example.com", lens + "/run-1", lens, lens + "/run-1", ""},
		},
		"the pod and the step that failed are for the link of a task": {
			data: map[string]string{
				"custom-console-url":            lens,
				"custom-console-url-pr-details": lens + "/{{ pod }}",
				"custom-console-url-namespace":  lens + "/{{ firstFailedStep }}",
				"custom-console-url-pr-tasklog": lens + "/{{ pod }}?step={{ firstFailedStep }}",
			},
			task: status.TaskLink{Name: "build", Pod: "run-1-build-pod", FailedStep: "go test"},
			want: links{"lens.example.com", lens, lens, lens + "/run-1-build-pod?step=go%20test", ""},
		},
		"a task without a failed step has a link": {
			data: map[string]string{
				"custom-console-url": lens, "custom-console-url-pr-tasklog": lens + "/{{ task }}?step={{ firstFailedStep }}",
			},
			want: links{"lens.example.com", lens, lens, lens + "/build?step=", ""},
		},
		"params of the event": {
			data: map[string]string{
				"custom-console-url":            lens,
				"custom-console-url-namespace":  lens + "/{{ team }}",
				"custom-console-url-pr-details": lens + "/{{ team }}/{{ namespace }}/{{ pr }}?on={{ cluster }}",
			},
			run: v1alpha1.Run{LinkParams: map[string]string{
				"team": "a/b", "cluster": "x&y", "namespace": "elsewhere", "pr": "another",
			}},
			want: links{"lens.example.com", lens + "/a%2Fb/ci/run-1?on=x%26y", lens + "/a%2Fb", lens + "/a%2Fb/ci/run-1?on=x%26y", ""},
		},
		"Tekton Results": {
			data: map[string]string{"tekton-results-url": lens + "/{{ namespace }}/results/{{ uid }}/{{ pr }}"},
			run:  v1alpha1.Run{UID: "u-1"},
			want: links{Archive: lens + "/ci/results/u-1/run-1"},
		},
		"Tekton Results has no run that does not exist yet": {
			data: map[string]string{"tekton-results-url": lens + "/{{ pr }}", "tekton-dashboard-url": dash},
			want: links{
				"Tekton Dashboard", dash + "/#/namespaces/ci/pipelineruns/run-1", dash + "/#/namespaces/ci/pipelineruns",
				dash + "/#/namespaces/ci/pipelineruns/run-1?pipelineTask=build", "",
			},
		},
		"Tekton Results, with a variable that is not known": {
			data: map[string]string{"tekton-results-url": lens + "/{{ task }}"},
			run:  v1alpha1.Run{UID: "u-1"},
		},
		"a value is data": {
			data: map[string]string{"custom-console-url": lens, "custom-console-url-pr-tasklog": lens + "/{{ task }}"},
			task: status.TaskLink{Name: "../a b?x#y"},
			want: links{"lens.example.com", lens, lens, lens + "/..%2Fa%20b%3Fx%23y", ""},
		},
		"a value is no part of a host": {
			data: map[string]string{"custom-console-url": lens, "custom-console-url-pr-details": "https://{{ team }}.example.com"},
			run:  v1alpha1.Run{LinkParams: map[string]string{"team": "evil.example.org/"}},
			want: links{"lens.example.com", lens, lens, lens, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(test.data)
			if err != nil {
				t.Fatal(err)
			}
			test.run.Namespace, test.run.Name = "ci", "run-1"
			if test.task.Name == "" {
				test.task.Name = "build"
			}
			if diff := cmp.Diff(test.want, linksOf(c.Console, test.run, test.task)); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// The params of another run are not known, and those of this run say nothing about it.
func TestLinksToAnotherRun(t *testing.T) {
	run := v1alpha1.Run{Namespace: "ci", Name: "run-1", LinkParams: map[string]string{"team": "a"}}
	for template, want := range map[string]string{
		lens + "/{{ namespace }}/{{ pr }}": lens + "/ci/run-2",
		lens + "/{{ team }}/{{ pr }}":      lens,
	} {
		c := Console{url: lens, run: template}
		if got := c.Links(run).Other("run-2"); got != want {
			t.Errorf("%s: another run's link is %q, want %q", template, got, want)
		}
	}
	if (Console{}).Links(run).Other != nil {
		t.Error("another run has a link although there is no console")
	}
}

func TestConsoleParams(t *testing.T) {
	c := Console{
		run: lens + "/{{ team }}/{{ pr }}", task: lens + "/{{ pod }}{{task}}{{ firstFailedStep }}{{ area }}",
		namespace: lens + "/{{namespace}}{{team}}", results: lens + "/{{ uid }}{{ zone }}",
	}
	if got := c.Params(); !slices.Equal(got, []string{"area", "team", "zone"}) {
		t.Errorf("params %q", got)
	}
}

// What an administrator has set comes before the console that was found.
func TestStoreWithOpenShift(t *testing.T) {
	for name, test := range map[string]struct {
		found string
		data  map[string]string
		want  links
	}{
		"found": {
			found: "https://console.apps.example.com/",
			want: links{
				"OpenShift Console", "https://console.apps.example.com/k8s/ns/ci/tekton.dev~v1~PipelineRun/run-1",
				"https://console.apps.example.com/pipelines/ns/ci/pipeline-runs",
				"https://console.apps.example.com/k8s/ns/ci/tekton.dev~v1~PipelineRun/run-1/logs/build", "",
			},
		},
		"not found":    {},
		"not a URL":    {found: "javascript:alert(1)"},
		"a custom one": {found: dash, data: map[string]string{"custom-console-url": lens}, want: links{"lens.example.com", lens, lens, lens, ""}},
		"a dashboard": {
			found: lens, data: map[string]string{"tekton-dashboard-url": dash},
			want: links{
				"Tekton Dashboard", dash + "/#/namespaces/ci/pipelineruns/run-1", dash + "/#/namespaces/ci/pipelineruns",
				dash + "/#/namespaces/ci/pipelineruns/run-1?pipelineTask=build", "",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(logtesting.TestLogger(t))
			found := ""
			s.OpenShift = func() string { return found }
			s.OnConfigChanged(configMap(test.data))
			before := s.Load()
			found = test.found
			run := v1alpha1.Run{Namespace: "ci", Name: "run-1"}
			if diff := cmp.Diff(test.want, linksOf(s.Load().Console, run, status.TaskLink{Name: "build"})); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if before.Console.openShift != "" {
				t.Error("a configuration that is in use has changed")
			}
		})
	}
}
