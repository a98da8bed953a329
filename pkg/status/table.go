// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// unset stands for what is not known in the table.
const unset = "---"

// maxName bounds a name in the table, in bytes.
const maxName = 256

// rows is the task table: TaskRuns in the order of their start, then what has no TaskRun of
// its own (custom runs, child pipelines, TaskRuns that are gone), then the skipped tasks.
func (r *report) rows() []string {
	taskRuns := slices.Clone(r.taskRuns)
	slices.SortStableFunc(taskRuns, func(a, b *pipelinev1.TaskRun) int {
		return diagnosis.Earlier(a.Status.StartTime, b.Status.StartTime, r.label(a), r.label(b))
	})
	rows, listed := []string{}, map[string]bool{}
	for _, tr := range taskRuns {
		listed[tr.Name] = true
		label := r.label(tr)
		if n := len(tr.Status.RetriesStatus); n > 0 {
			label += " (retried " + plural(n, "time") + ")"
		}
		rows = append(rows, row(condition(tr), duration(tr), r.link(linkOf(tr)), label))
	}
	for _, child := range r.pr.Status.ChildReferences {
		if listed[child.Name] {
			continue
		}
		label := display(child.DisplayName, cmp.Or(child.PipelineTaskName, child.Name))
		if child.Kind != "" && child.Kind != pipeline.TaskRunControllerName {
			label += " (" + child.Kind + ")"
		}
		rows = append(rows, row(unset, unset, r.link(TaskLink{Name: child.PipelineTaskName}), label))
	}
	for _, skipped := range r.pr.Status.SkippedTasks {
		rows = append(rows, row("⚪ Skipped", unset, "", skipped.Name+" ("+string(skipped.Reason)+")"))
	}
	return rows
}

func row(condition, duration, url, label string) string {
	return "<tr><td>" + line(condition) + "</td><td>" + line(duration) + "</td><td>" +
		anchor(url, shorten(label, "…", maxName)) + "</td></tr>"
}

func (r *report) link(task TaskLink) string {
	if r.links.Task == nil || task.Name == "" {
		return ""
	}
	return r.links.Task(task)
}

func linkOf(tr *pipelinev1.TaskRun) TaskLink {
	link := TaskLink{Name: diagnosis.TaskName(tr), Pod: tr.Status.PodName}
	if step := diagnosis.FailedStep(&tr.Status); step != nil {
		link.FailedStep = step.Name
	}
	return link
}

// label is what people know a TaskRun by: the display name and the name of its pipeline task, and
// the TaskRun's own name where a matrix made several of one task.
func (r *report) label(tr *pipelinev1.TaskRun) string {
	name, shown, siblings := diagnosis.TaskName(tr), "", 0
	for _, child := range r.pr.Status.ChildReferences {
		if child.Name == tr.Name {
			shown = child.DisplayName
		}
	}
	for _, other := range r.taskRuns {
		if diagnosis.TaskName(other) == name {
			siblings++
		}
	}
	if siblings > 1 {
		name += ", " + tr.Name
		if shown == "" {
			return name
		}
	}
	return display(shown, name)
}

func display(shown, name string) string {
	if shown == "" || shown == name {
		return name
	}
	return shown + " (" + name + ")"
}

func condition(tr *pipelinev1.TaskRun) string {
	c := tr.Status.GetCondition(apis.ConditionSucceeded)
	if c == nil {
		return unset
	}
	switch c.Status {
	case corev1.ConditionFalse:
		if c.Reason == pipelinev1.TaskRunReasonFailureIgnored.String() {
			return "🔴 Failed (ignored)"
		}
		return "🔴 Failed"
	case corev1.ConditionTrue:
		return "🟢 Succeeded"
	case corev1.ConditionUnknown:
		return "🟡 Running"
	}
	return "🔄 Pending"
}

// duration has one unit, rounded down.
func duration(tr *pipelinev1.TaskRun) string {
	start, end := tr.Status.StartTime, tr.Status.CompletionTime
	if start.IsZero() || end.IsZero() || end.Before(start) {
		return unset
	}
	d := end.Sub(start.Time)
	switch {
	case d >= 24*time.Hour:
		return plural(int(d/(24*time.Hour)), "day")
	case d >= time.Hour:
		return plural(int(d/time.Hour), "hour")
	case d >= time.Minute:
		return plural(int(d/time.Minute), "minute")
	}
	return plural(int(d/time.Second), "second")
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
