// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// keepFile returns a pipeline with this max-keep-runs.
func keepFile(name, keep string) git.File {
	file := helloFile(name)
	const annotations = "  annotations:\n"
	file.Data = bytes.Replace(file.Data, []byte(annotations),
		[]byte(annotations+"    pipelinesascode.tekton.dev/max-keep-runs: "+keep+"\n"), 1)
	return file
}

// past is a settled event and its run, which was completed this many minutes before the env starts.
type past struct {
	event *v1alpha1.GitEvent
	run   *pipelinev1.PipelineRun
}

func (w *env) pastEvent(name string, minutes int) past {
	e := event()
	e.Name, e.UID = name, types.UID("uid-of-"+name)
	made := metav1.NewTime(w.clock.Now().Add(-10 * 24 * time.Hour))
	done := metav1.NewTime(w.clock.Now().Add(-time.Duration(minutes) * time.Minute))
	run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: tenant, Name: resources.RunName(name, ".tekton/hello.yaml", 0, "hello"), UID: types.UID("run-of-" + name),
		CreationTimestamp: made,
		Labels: map[string]string{
			plumbline.InstallationLabel: system, plumbline.EventLabel: name, pipelinesascode.Repository: "app",
			pipelinesascode.OriginalPRName: "hello", pipelinesascode.State: pipelinesascode.StateCompleted,
		},
		Annotations: map[string]string{
			pipelinesascode.Repository: "app", pipelinesascode.OriginalPRName: "hello",
			plumbline.RunKeyAnnotation: system + "/" + name + "/.tekton/hello.yaml#0",
		},
	}}
	run.Status.CompletionTime = &done
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
	e.Status = v1alpha1.GitEventStatus{Phase: v1alpha1.PhaseSettled, Runs: []v1alpha1.Run{{
		Pipeline: "hello", Namespace: tenant, Name: run.Name, UID: run.UID,
		Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed, CompletedAt: &done},
	}}}
	return past{e, run}
}

func (w *env) addPast(p past) {
	w.t.Helper()
	if p.event != nil {
		w.must(w.own.Tracker().Add(p.event))
	}
	w.must(w.tekton.Tracker().Add(p.run))
}

// history adds n runs that were completed one, two and so many hours ago.
func (w *env) history(n int) {
	for i := 1; i <= n; i++ {
		w.addPast(w.pastEvent(fmt.Sprint("push-old-", i), 60*i))
	}
}

// remainingRuns returns the names of the existing runs, as their events call them.
func (w *env) remainingRuns() string {
	var names []string
	for _, run := range w.runs() {
		names = append(names, strings.TrimPrefix(run.Labels[plumbline.EventLabel], "push-"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// finishOwnRuns finishes the event's own runs.
func (w *env) finishOwnRuns() {
	for _, run := range w.runs() {
		if run.Labels[plumbline.EventLabel] == "push-1" && !run.IsDone() {
			run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
		}
	}
}

// The runs that were completed last are kept, whatever their result, and as many as the author or
// the administrator says.
func TestFinishedRunsArePruned(t *testing.T) {
	t.Parallel()
	limited := map[string]string{"default-max-keep-runs": "1", "max-keep-run-upper-limit": "1"}
	for name, c := range map[string]struct {
		keep     string
		settings map[string]string
		left     string
	}{
		"the author's number": {`"2"`, nil, "1 old-1"},
		"one":                 {`"1"`, nil, "1"},
		"none":                {`"0"`, nil, ""},
		"more than there are": {`"9"`, nil, "1 old-1 old-2 old-3"},
		"no number":           {`abc`, limited, "1 old-1 old-2 old-3"},
		"below none": {
			`"-1"`, map[string]string{"max-keep-run-upper-limit": "1"}, "1 old-1 old-2 old-3",
		},
		"a million millions": {`"1000000000000"`, nil, "1 old-1 old-2 old-3"},
		"a million millions, capped": {
			`"1000000000000"`, map[string]string{"max-keep-run-upper-limit": "3"}, "1 old-1 old-2",
		},
		"more than a number can be, capped": {
			`"` + strings.Repeat("9", 30) + `"`, map[string]string{"max-keep-run-upper-limit": "2"}, "1 old-1",
		},
		"below the cap": {`"2"`, map[string]string{"max-keep-run-upper-limit": "3"}, "1 old-1"},
		"nothing, and the default": {
			"", map[string]string{"default-max-keep-runs": "2", "max-keep-run-upper-limit": "1"}, "1 old-1",
		},
		"nothing, and no default": {"", map[string]string{"max-keep-run-upper-limit": "1"}, "1 old-1 old-2 old-3"},
		"more than the default, which is for others": {
			`"3"`, map[string]string{"default-max-keep-runs": "1"}, "1 old-1 old-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := helloFile("hello")
			if c.keep != "" {
				file = keepFile("hello", c.keep)
			}
			w := newEnv(t, file)
			w.settings = c.settings
			w.history(3)
			w.settle(corev1.ConditionTrue)
			if got := w.remainingRuns(); got != c.left {
				t.Errorf("left are %q, want %q", got, c.left)
			}
			if w.event().Status.Runs[0].MaxKeepRuns != nil {
				t.Error("the stub keeps what nobody reads any more")
			}
		})
	}
}

// A run that is not certainly finished, reported and ours is neither deleted nor counted. Each time
// there are three others, of which one is kept together with the event's own.
func TestRunsThatAreNotPruned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *env, p *past){
		"its event is open":                   func(_ *env, p *past) { p.event.Status.Phase = "" },
		"its event has given up to report it": func(_ *env, p *past) { p.event.Status.Unreported = true },
		"its event has not recorded it":       func(_ *env, p *past) { p.event.Status.Runs[0].UID = "another" },
		"its event is another Repository's":   func(_ *env, p *past) { p.event.Spec.Repository.Name = "other" },
		"its event is another URL's": func(_ *env, p *past) {
			p.event.Spec.Repository.URL = "https://git.example/acme/other"
		},
		"its event has recorded no end": func(_ *env, p *past) { p.event.Status.Runs[0].Result = nil },
		"its event saw it deleted": func(_ *env, p *past) {
			p.event.Status.Runs[0].Result.Outcome = v1alpha1.OutcomeDeleted
		},
		"it is another installation's": func(_ *env, p *past) {
			p.run.Labels[plumbline.InstallationLabel] = "other"
		},
		"it is another pipeline's": func(_ *env, p *past) {
			p.run.Annotations[pipelinesascode.OriginalPRName] = "other"
		},
		"it is another Repository's": func(_ *env, p *past) {
			p.run.Annotations[pipelinesascode.Repository] = "other"
		},
		"it is being deleted": func(w *env, p *past) {
			p.run.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
		},
		"it is somebody's, and names no event": func(_ *env, p *past) {
			p.event, p.run.Labels[plumbline.EventLabel] = nil, "No_Event"
		},
		"it is somebody's copy of one that is over":  func(_ *env, p *past) { p.event, p.run.Name = nil, "a-copy" },
		"its event is forgotten, and it is not over": func(_ *env, p *past) { p.event, p.run.Status.Conditions = nil, nil },
		"its event is gone, and should not be yet": func(w *env, p *past) {
			p.event, p.run.CreationTimestamp = nil, metav1.NewTime(w.clock.Now().Add(-4*24*time.Hour+time.Minute))
		},
		"its event is forgotten, and it is not labelled as reported": func(w *env, p *past) {
			p.event, p.run.Labels[pipelinesascode.State] = nil, pipelinesascode.StateStarted
			p.run.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-7 * 24 * time.Hour))
		},
		"somebody has labelled a run of another one": func(_ *env, p *past) { p.event.Status.Runs[0].Pipeline = "other" },
		"somebody has labelled a run of another one, of which no event is left": func(_ *env, p *past) {
			p.event, p.run.Name = nil, resources.RunName("push-odd", ".tekton/hello.yaml", 0, "other")
			p.run.Annotations[plumbline.DefinitionAnnotation] = "other"
		},
		"somebody has labelled a run of another one with placeholders": func(_ *env, p *past) {
			p.event, p.run.Name = nil, resources.RunName("push-odd", ".tekton/hello.yaml", 0, "deploy-{{ target_branch }}")
			p.run.Annotations[plumbline.DefinitionAnnotation] = "deploy-{{ target_branch }}-"
		},
		"its event is forgotten, and was another URL's": func(_ *env, p *past) {
			p.event, p.run.Annotations[pipelinesascode.RepoURL] = nil, "https://git.example/acme/other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, keepFile("hello", `"2"`))
			w.history(3)
			odd := w.pastEvent("push-odd", 30)
			change(w, &odd)
			w.addPast(odd)
			ran := false
			w.hook = func(_ int, call string) outcome {
				ran = ran || call == "list pipelineruns"
				return outcome{}
			}
			for range 6 {
				_, _ = w.reconcile()
				w.finishOwnRuns()
			}
			runs := w.runs()
			there := slices.ContainsFunc(runs, func(run pipelinev1.PipelineRun) bool { return run.UID == odd.run.UID })
			old := slices.ContainsFunc(runs, func(run pipelinev1.PipelineRun) bool { return run.UID == "run-of-push-old-1" })
			if !ran || !there || !old || len(runs) != 3 {
				t.Errorf("left are %q, want the odd one, the event's own and the newest of the others", w.remainingRuns())
			}
		})
	}
}

// A run whose event is deleted is known by its name, as long as its definition's name is.
func TestRunsOfDeletedEventsArePruned(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"2"`))
	for i := 1; i <= 3; i++ {
		old := w.pastEvent(fmt.Sprint("push-old-", i), 60*i)
		old.event = nil
		if i == 2 {
			old.run.Name = resources.RunName("push-old-2", ".tekton/hello.yaml", 0, "{{ repo_name }}")
			old.run.Annotations[plumbline.DefinitionAnnotation] = "{{ repo_name }}-"
		}
		w.addPast(old)
	}
	w.settle(corev1.ConditionTrue)
	if got := w.remainingRuns(); got != "1 old-1" {
		t.Errorf("left are %q", got)
	}
}
