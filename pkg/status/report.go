// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// report is what the body of a concluded check is made from.
type report struct {
	pr       *pipelinev1.PipelineRun
	taskRuns []*pipelinev1.TaskRun
	links    Links
	facts    diagnosis.Facts
	limit    int
	outcome  v1alpha1.Outcome
}

// final is the data of final.md; its values are HTML.
type final struct {
	Namespace, Run   string
	Archive          string
	Rows             []string
	Message, Failure string
	Ended            string // how a cancelled run ended, which its tasks may not show yet
}

func (r *report) text(condition *apis.Condition) string {
	f := final{
		Namespace: anchor(r.links.Namespace, r.pr.Namespace),
		Run:       anchor(r.links.Run, r.pr.Name),
		Archive:   archive(r.links.Archive, r.pr.Name),
		Message:   r.bounded(pre(diagnosis.WithoutHint(condition.Message, r.facts))),
	}
	switch r.outcome {
	case v1alpha1.OutcomeFailed:
		f.Failure = r.failure(condition)
	case v1alpha1.OutcomeCancelled:
		f.Ended = r.ended(condition)
	}
	rows := r.rows()
	f.Rows = rows
	text := render("final.md", f)
	if r.limit <= 0 || len(text) <= r.limit {
		return text
	}
	// The table is cut first: the failed tasks are below it.
	f.Rows = []string{more(len(rows))}
	room := r.limit - len(render("final.md", f))
	kept := 0
	for kept < len(rows) && room >= len(rows[kept])+1 {
		room -= len(rows[kept]) + 1
		kept++
	}
	f.Rows = append(slices.Clone(rows[:kept]), more(len(rows)-kept))
	return shorten(render("final.md", f), cutMark, r.limit)
}

// archive links to the archived run, which exists after the PipelineRun was pruned.
func archive(url, name string) string {
	if !isWeb(url) {
		return ""
	}
	return anchor(url, name)
}

func more(n int) string {
	return `<tr><td colspan="3">… and ` + strconv.Itoa(n) + ` more (cut)</td></tr>`
}

// failure returns what failed: the first failing task, Tekton's words about it and about the run,
// and an explanation.
func (r *report) failure(condition *apis.Condition) string {
	var parts []string
	failing := diagnosis.Failing(r.taskRuns)
	if len(failing) > 0 {
		first := failing[0]
		c := first.Status.GetCondition(apis.ConditionSucceeded)
		because := ""
		if c.Reason != pipelinev1.TaskRunReasonFailed.String() {
			because = " (" + line(c.Reason) + ")"
		}
		parts = append(parts,
			fmt.Sprintf(textTaskFailed, r.bounded(line(r.label(first))), because),
			"<pre>"+r.bounded(pre(diagnosis.WithoutHint(c.Message, r.facts)))+"</pre>")
		parts = append(parts, r.explanation(c)...)
		if !diagnosis.FromControlPlane(c.Reason) {
			parts = append(parts, r.logOf(first))
		}
		if others := r.names(failing[1:]); others != "" {
			parts = append(parts, "<p>Failed as well: "+r.bounded(others)+"</p>")
		}
	}
	parts = append(parts, r.explanation(condition)...)
	if len(r.rows()) > 0 {
		parts = append(parts, r.ended(condition))
	}
	return strings.Join(parts, "\n")
}

// logOf returns where the whole log of a task is: at the console, or in the cluster.
func (r *report) logOf(tr *pipelinev1.TaskRun) string {
	if url := r.link(linkOf(tr)); isWeb(url) {
		return fmt.Sprintf(textLogAt, anchor(url, r.bounded(diagnosis.TaskName(tr))))
	}
	return fmt.Sprintf(textLogCommand, line(tr.Namespace), line(tr.Name))
}

// brief returns why a run failed, unless the title says all: the first task that failed and its
// words, or the run's own words if no task failed.
func (r *report) brief(condition *apis.Condition, d diagnosis.Diagnosis) string {
	if r.outcome != v1alpha1.OutcomeFailed || d.SaysAll() {
		return ""
	}
	of := ""
	if failing := diagnosis.Failing(r.taskRuns); len(failing) > 0 {
		of, condition = "task "+r.label(failing[0])+": ", failing[0].Status.GetCondition(apis.ConditionSucceeded)
	}
	words := cmp.Or(diagnosis.Explain(condition.Reason, condition.Message, r.facts),
		diagnosis.WithoutHint(condition.Message, r.facts), condition.Reason)
	return shorten(strings.Join(strings.Fields(of+words), " "), "…", maxBrief)
}

// ended is Tekton's last word on the run.
func (r *report) ended(condition *apis.Condition) string {
	message := r.bounded(line(diagnosis.WithoutHint(condition.Message, r.facts)))
	return "<p>The PipelineRun ended with <b>" + line(condition.Reason) + "</b>: " + message + "</p>"
}

func (r *report) explanation(c *apis.Condition) []string {
	if text := diagnosis.Explain(c.Reason, c.Message, r.facts); text != "" {
		return []string{"<p>" + r.bounded(line(text)) + "</p>"}
	}
	return nil
}

func (r *report) names(taskRuns []*pipelinev1.TaskRun) string {
	var names []string
	for _, tr := range taskRuns {
		names = append(names, line(r.label(tr)))
	}
	return strings.Join(names, ", ")
}

// bounded keeps one piece of HTML text from taking the whole report; it does not cut an entity in
// two.
func (r *report) bounded(text string) string {
	if r.limit <= 0 || len(text) <= r.limit/6 {
		return text
	}
	text = shorten(text, "", r.limit/6)
	if i := strings.LastIndexByte(text, '&'); i >= 0 && !strings.Contains(text[i:], ";") {
		text = text[:i]
	}
	return text + " … (cut)"
}

// pre makes text safe in a pre element of an HTML block, which a blank line would end.
func pre(text string) string {
	lines := strings.Split(escape(text), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" }), "\n")
}
