// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Console makes links to where people watch runs: a custom console, else a Tekton Dashboard. The
// zero value makes none.
type Console struct {
	dashboard                       string
	name, url, run, task, namespace string
}

// variable is a template variable, or what is left of one.
var variable = regexp.MustCompile(`{{\s*([^{}]*?)\s*}}`)

// Links returns the links of one PipelineRun. Without a console all are empty, and Task returns "".
func (c Console) Links(namespace, pipelineRun string) status.Links {
	var links status.Links
	switch {
	case c.url != "":
		links = c.custom(namespace, pipelineRun)
	case c.dashboard != "":
		links = tektonDashboard(c.dashboard, namespace, pipelineRun)
	default:
		return status.Links{Task: func(string) string { return "" }}
	}
	links.Other = func(name string) string { return c.Links(namespace, name).Run }
	return links
}

func tektonDashboard(base, namespace, pipelineRun string) status.Links {
	list := base + "/#/namespaces/" + escape(namespace) + "/pipelineruns"
	run := list + "/" + escape(pipelineRun)
	return status.Links{
		ConsoleName: "Tekton Dashboard",
		Run:         run,
		Namespace:   list,
		Task:        func(task string) string { return run + "?pipelineTask=" + escape(task) },
	}
}

// custom returns the links of a custom console. Where a template is missing or has an unknown
// variable, the link is the console's own URL, and the link of a task is that of its run.
func (c Console) custom(namespace, pipelineRun string) status.Links {
	values := map[string]string{"namespace": namespace, "pr": pipelineRun}
	run := render(c.run, values, c.url)
	return status.Links{
		ConsoleName: c.title(),
		Run:         run,
		Namespace:   render(c.namespace, values, c.url),
		Task: func(task string) string {
			return render(c.task, map[string]string{"namespace": namespace, "pr": pipelineRun, "task": task}, run)
		},
	}
}

func (c Console) title() string {
	if c.name != "" {
		return c.name
	}
	u, err := url.Parse(c.url)
	if err != nil {
		return "Console"
	}
	return u.Host
}

// render escapes values: they cannot add a path segment or a query.
func render(template string, values map[string]string, fallback string) string {
	if template == "" {
		return fallback
	}
	complete := true
	text := variable.ReplaceAllStringFunc(template, func(found string) string {
		v, known := values[variable.FindStringSubmatch(found)[1]]
		complete = complete && known
		return escape(v)
	})
	if !complete || !isHTTP(text) {
		return fallback
	}
	return text
}

// escape is right in a path, in a query and in a fragment.
func escape(v string) string {
	return strings.ReplaceAll(url.QueryEscape(v), "+", "%20")
}
