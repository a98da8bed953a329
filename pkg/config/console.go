// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Console makes links to where people watch runs: a custom console, else a Tekton Dashboard, else
// the console of OpenShift. The zero value makes none.
type Console struct {
	dashboard                       string
	name, url, run, task, namespace string
	// results is the template of the page of an archived run.
	results string
	// openShift is the URL of the cluster's own console. No key sets it.
	openShift string
}

// The variables of templates that are about a run or a task. All others are params.
const (
	varNamespace  = "namespace"
	varRun        = "pr"
	varUID        = "uid"
	varTask       = "task"
	varPod        = "pod"
	varFailedStep = "firstFailedStep"
)

// variable is a template variable, or what is left of one.
var variable = regexp.MustCompile(`{{\s*([^{}]*?)\s*}}`)

// Configured reports whether the ConfigMap names a console.
func (c Console) Configured() bool { return c.url != "" || c.dashboard != "" }

// Params returns the names of the params that the templates use, sorted.
func (c Console) Params() []string {
	own := []string{varNamespace, varRun, varUID, varTask, varPod, varFailedStep}
	var names []string
	for _, template := range []string{c.run, c.task, c.namespace, c.results} {
		for _, found := range variable.FindAllStringSubmatch(template, -1) {
			if !slices.Contains(own, found[1]) {
				names = append(names, found[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Links returns the links of one PipelineRun. Without a console all are empty, and Task returns "".
func (c Console) Links(run v1alpha1.Run) status.Links {
	var links status.Links
	switch {
	case c.url != "":
		links = c.custom(run)
	case c.dashboard != "":
		links = tektonDashboard(c.dashboard, run)
	case c.openShift != "":
		links = openShiftConsole(c.openShift, run)
	default:
		links = status.Links{Task: func(status.TaskLink) string { return "" }}
	}
	if links.Run != "" {
		links.Other = func(name string) string {
			return c.Links(v1alpha1.Run{Namespace: run.Namespace, Name: name}).Run // its params are not known
		}
	}
	if c.results != "" && run.UID != "" {
		values := valuesOf(run)
		values[varUID] = string(run.UID)
		links.Archive = render(c.results, values, "")
	}
	return links
}

func tektonDashboard(base string, of v1alpha1.Run) status.Links {
	list := base + "/#/namespaces/" + escape(of.Namespace) + "/pipelineruns"
	run := list + "/" + escape(of.Name)
	return status.Links{
		ConsoleName: "Tekton Dashboard",
		Run:         run,
		Namespace:   list,
		Task:        func(task status.TaskLink) string { return run + "?pipelineTask=" + escape(task.Name) },
	}
}

func openShiftConsole(base string, of v1alpha1.Run) status.Links {
	run := base + "/k8s/ns/" + escape(of.Namespace) + "/tekton.dev~v1~PipelineRun/" + escape(of.Name)
	return status.Links{
		ConsoleName: "OpenShift Console",
		Run:         run,
		Namespace:   base + "/pipelines/ns/" + escape(of.Namespace) + "/pipeline-runs",
		Task:        func(task status.TaskLink) string { return run + "/logs/" + escape(task.Name) },
	}
}

// custom returns the links of a custom console. Where a template is missing or has an unknown
// variable, the link is the console's own URL, and the link of a task is that of its run.
func (c Console) custom(of v1alpha1.Run) status.Links {
	run := render(c.run, valuesOf(of), c.url)
	return status.Links{
		ConsoleName: c.title(),
		Run:         run,
		Namespace:   render(c.namespace, valuesOf(of), c.url),
		Task: func(task status.TaskLink) string {
			values := valuesOf(of)
			values[varTask], values[varPod], values[varFailedStep] = task.Name, task.Pod, task.FailedStep
			return render(c.task, values, run)
		},
	}
}

// valuesOf returns a new map with the variables of each template. A param does not replace the
// run's own namespace or name.
func valuesOf(run v1alpha1.Run) map[string]string {
	values := map[string]string{}
	maps.Copy(values, run.LinkParams)
	values[varNamespace], values[varRun] = run.Namespace, run.Name
	return values
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
