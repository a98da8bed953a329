// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// settled bounds how long nothing may change until everything has settled, redeliveries included.
// Tekton ends one PipelineRun a second on a busy machine, so the whole time has no bound.
const settled = 5 * time.Minute

// Outcome is what came of all events.
type Outcome struct {
	Events, Ours, Theirs, Refused, Redelivered int
	// OfPulls are those of pull requests, comments included. OnLab are those of GitLab.
	OfPulls, OnLab int
	// Again are the deliveries that Pipelines-as-Code has run more than once, because the receiver
	// that forwarded them was killed before it answered. Pipelines-as-Code does not recognise a
	// delivery that is sent again.
	Again int
}

func (o Outcome) String() string {
	return fmt.Sprintf("%d events (%d of pull requests, %d of GitLab): %d run by Plumbline, %d by Pipelines-as-Code "+
		"(%d of them again, as the answer to their delivery was lost); %d attempts were not accepted, %d were redeliveries",
		o.Events, o.OfPulls, o.OnLab, o.Ours, o.Theirs, o.Again, o.Refused, o.Redelivered)
}

// Await waits until each event has run and is reported, and returns what contradicts that each ran
// exactly once.
func (b *Beside) Await(ctx context.Context) (o Outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := time.AfterFunc(settled, cancel)
	defer stop.Stop()
	open := -1
	err = cluster.Poll(ctx, time.Second, func() error {
		b.refused = slices.DeleteFunc(b.refused, func(d delivery) bool { return d.send(ctx, b.receiver())/100 == 2 })
		problems := open
		if o, problems, err = b.judge(ctx); problems != open {
			open = problems
			stop.Reset(settled)
		}
		return err
	})
	return o, err
}

// judge compares the PipelineRuns and the checks with the events. It returns how many problems
// there are, and some of them.
func (b *Beside) judge(ctx context.Context) (o Outcome, open int, err error) {
	list, err := b.dynamic.Resource(cluster.PipelineRuns()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, 0, err
	}
	runs := map[string][]unstructured.Unstructured{}
	for _, run := range list.Items {
		sha := run.GetLabels()[pipelinesascode.SHA]
		runs[sha] = append(runs[sha], run)
	}
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	lost := map[string]bool{} // the answer to an attempt of these deliveries
	attempt := func(id string, code int, again bool) {
		lost[id] = lost[id] || code == 0
		if code/100 != 2 {
			o.Refused++
		}
		if again {
			o.Redelivered++
		}
	}
	for _, d := range b.forge.Deliveries() {
		attempt(d.GUID, d.StatusCode, d.Redelivery)
	}
	for _, d := range b.lab.Deliveries() {
		attempt(d.Key, d.StatusCode, d.Resent)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for sha, c := range b.commits {
		o.Events += len(c.deliveries)
		if c.pipeline == "pull" {
			o.OfPulls += len(c.deliveries)
		}
		if c.repo.onLab {
			o.OnLab += len(c.deliveries)
		}
		again := 0
		for _, guid := range c.deliveries {
			if lost[guid] {
				again += max(0, b.accepted[guid]-1)
			}
		}
		o.Again += again
		if len(runs[sha]) != len(c.deliveries)+again {
			add("%s of %s (deliveries %s) has %d PipelineRuns", sha, c.repo.name, c.deliveries, len(runs[sha]))
			continue
		}
		for _, run := range runs[sha] {
			if _, ours := run.GetLabels()[plumbline.InstallationLabel]; ours {
				o.Ours++
			} else {
				o.Theirs++
			}
			if problem := b.mixed(run); problem != "" {
				add("PipelineRun %s/%s %s", run.GetNamespace(), run.GetName(), problem)
			}
		}
		if problem := b.untrue(sha, c, len(runs[sha])); problem != "" {
			add("%s of %s: %s", sha, c.repo.name, problem)
		}
	}
	if len(list.Items) != o.Events+o.Again {
		add("%d PipelineRuns for %d events", len(list.Items), o.Events)
	}
	return o, len(problems), errors.Join(problems[:min(len(problems), 20)]...)
}

// mixed returns what one product has written to a PipelineRun of the other one, "" for nothing.
func (b *Beside) mixed(run unstructured.Unstructured) string {
	_, ours := run.GetLabels()[plumbline.InstallationLabel]
	for _, field := range run.GetManagedFields() {
		if theirs := strings.HasPrefix(field.Manager, "pipelines-as-code"); theirs == ours && (theirs ||
			strings.HasPrefix(field.Manager, "plumbline") || field.Manager == "controller") {
			return "was written by " + field.Manager
		}
	}
	if !ours {
		return ""
	}
	for _, finalizer := range run.GetFinalizers() {
		if strings.HasPrefix(finalizer, "pipelinesascode") {
			return "has the finalizer " + finalizer
		}
	}
	if _, state := run.GetAnnotations()[pipelinesascode.State]; state && !b.finished {
		return "has a state"
	}
	return ""
}

// untrue returns why the checks of a commit do not say how its PipelineRuns ended, "" if they do.
func (b *Beside) untrue(sha string, c *commit, runs int) string {
	want := map[bool]string{false: "success", true: "failure"}[fails(c.repo.name)]
	if c.repo.onLab {
		shown, _ := b.lab.Current(c.repo.name, sha, Application+" / "+c.pipeline)
		if (shown.State == "failed") != fails(c.repo.name) || shown.State != "failed" && shown.State != want {
			return fmt.Sprintf("the status of %d runs is %q, want %s", runs, shown.State, want)
		}
		return ""
	}
	checks := b.forge.ChecksFor(c.repo.name, sha)
	other := func(c forge.CheckRun) bool { return c.Conclusion != want }
	if len(checks) == 0 || len(checks) > runs || slices.ContainsFunc(checks, other) {
		said := ""
		for _, check := range checks {
			said += fmt.Sprintf(" %s of %s is %s %s,", check.Name, check.ExternalID, check.Status, check.Conclusion)
		}
		return fmt.Sprintf("%d checks of %d runs, want all to say %s:%s", len(checks), runs, want, said)
	}
	return ""
}
