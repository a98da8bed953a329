// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// about returns an event of a pull request that was recorded in a second, and has one run
// "name-run" of each pipeline.
func about(pull, second int64, name string, pipelines ...string) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	e.Spec.Repository.URL, e.Spec.PullRequest = "app", &v1alpha1.PullRequest{Number: pull}
	e.Spec.ReceivedAt = metav1.NewTime(time.Unix(second, 0))
	for _, pipeline := range pipelines {
		e.Status.Runs = append(e.Status.Runs,
			v1alpha1.Run{Namespace: "ns", Name: name + "-" + pipeline, Pipeline: pipeline, UID: "u"})
	}
	return e
}

// command returns an event that cancels the earlier runs of a pull request, all pipelines if none
// is named.
func command(pull, second int64, names ...string) *v1alpha1.GitEvent {
	e := about(pull, second, "command")
	e.Status.Plan = &v1alpha1.Plan{
		Cancels: &v1alpha1.Cancellation{Names: names, Why: "octocat said so", At: e.Spec.ReceivedAt},
	}
	return e
}

func (p *tape) says(e *v1alpha1.GitEvent) { p.tell(theEvents, e.Name, e) }

// takesNote plays a version of an event that has recorded what another one cancels, or what has
// superseded it.
func (p *tape) takesNote(e, from *v1alpha1.GitEvent) {
	why := &v1alpha1.Cancellation{Why: "superseded by 1234567", At: from.Spec.ReceivedAt}
	if from.Status.Plan != nil {
		why = from.Status.Plan.Cancels
	}
	name, value, err := why.CancelsAs(from.Name)
	if err != nil {
		p.t.Fatal(err)
	}
	e.Annotations[name] = value
	p.says(e)
}

// stops plays a version of an event's run that was asked to end.
func (p *tape) stops(e *v1alpha1.GitEvent, pipeline string) {
	run := p.made(e.Name+"-"+pipeline, corev1.ConditionUnknown)
	run.Labels[plumbline.EventLabel], run.Spec.Status = e.Name, pipelinev1.PipelineRunSpecStatusCancelledRunFinally
	p.tell(theRuns, run.Name, run)
}

// over plays a version of an event whose runs of some pipelines are finished, of all if none is
// named.
func (p *tape) over(words ...string) {
	e := p.events[words[0]]
	for i := range e.Status.Runs {
		if len(words) == 1 || slices.Contains(words[1:], e.Status.Runs[i].Pipeline) {
			e.Status.Runs[i].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}
		}
	}
	p.says(e)
}

// The history finds a run that ends without a cancellation, one that an event without the right
// cancelled, and one that goes on although it was cancelled. A correct history has no finding.
func TestHistoryFindsWrongCancellation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		script     string // begin: a run of pull request 7, and a command that ends it, which no event has recorded yet
	}{
		{
			"a command ends what was started before", "",
			"begin; says e; says command; hears e command; stops e build; over e; settles command",
		},
		{
			"what a command does not name goes on", "",
			"event e 7 1 build lint; command 7 2 build; says e; says command; hears e command; stops e build; over e build",
		},
		{
			"a newer commit ends the runs of an older one", "",
			"event e 7 1 build; event newer 8 2; says newer; hears e newer; stops e build",
		},
		{
			"nobody has cancelled it",
			"PipelineRun e-build is told to end at resource version 2, and its GitEvent e knows of no cancellation",
			"begin; says e; stops e build",
		},
		{
			"it ends before its event has taken note", "its GitEvent e knows of no cancellation",
			"begin; says e; says command; stops e build; hears e command; settles e",
		},
		{
			"what a command does not name ends", "its GitEvent e knows of no cancellation",
			"event e 7 1 build lint; command 7 2 build; says command; hears e command; stops e lint; settles e",
		},
		{"no event has planned it", "no GitEvent has planned it", "event e 7 1; stops e build"},
		{
			"a command ends runs of another pull request", "because of GitEvent command (octocat said so), which may not end",
			"event e 7 1 build; command 8 2; says command; hears e command; stops e build",
		},
		{
			"a newer commit of another Repository ends runs",
			"because of GitEvent newer (superseded by 1234567), which may not end",
			"event e 7 1 build; event newer 7 2; elsewhere newer; says newer; hears e newer; stops e build",
		},
		{
			"an event that nobody has seen ends runs", "because of GitEvent command",
			"begin; hears e command; stops e build",
		},
		{
			"a run that was cancelled goes on", "run e-build goes on, and GitEvent command ends it",
			"begin; says command; hears e command",
		},
		{"a run that is newer goes on", "", "event e 7 3 build; command 7 2; says e; says command"},
		{
			"the event is not told, and its run ends by itself",
			"GitEvent e does not know that GitEvent command ends its run e-build",
			"begin; says e; says command; settles command; settles e",
		},
		{
			"the event had settled before the other one had told all", "",
			"begin; says e; says command; settles e; settles command",
		},
		{"the event was recorded later, and its run is over", "", "begin; says command; settles command; over e"},
	} {
		p := newTape(t)
		all := verbs{
			"says":  func(words ...string) { p.says(p.events[words[0]]) },
			"hears": func(words ...string) { p.takesNote(p.events[words[0]], p.events[words[1]]) },
			"stops": func(words ...string) { p.stops(p.events[words[0]], words[1]) },
			"over":  p.over,
			"settles": func(words ...string) {
				p.events[words[0]].Status.Phase = v1alpha1.PhaseSettled
				p.over(words...)
			},
			"elsewhere": func(words ...string) { p.events[words[0]].Spec.Repository.URL = "other" },
			"event": func(words ...string) {
				p.events[words[0]] = about(number(t, words[1]), number(t, words[2]), words[0], words[3:]...)
			},
			"command": func(words ...string) {
				p.events["command"] = command(number(t, words[0]), number(t, words[1]), words[2:]...)
			},
			"begin": func(...string) { p.events["e"], p.events["command"] = about(7, 1, "e", "build"), command(7, 2) },
		}
		all.play(t, c.script)
		judged(t, c.what, c.want, append(p.Never(), p.Cancelled()...))
	}
}

// What an event has recorded of its runs stays: a process with an old cache does not overwrite it.
func TestHistoryFindsLostRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		then       func(e *v1alpha1.GitEvent)
	}{
		{"more is recorded", "", func(e *v1alpha1.GitEvent) { e.Status.Runs[1].UID = "v" }},
		{"what was not made is planned anew", "", func(e *v1alpha1.GitEvent) { e.Status.Runs[1].Name = "again" }},
		{"a delivery that is sent again is recorded anew", "",
			func(e *v1alpha1.GitEvent) { e.UID, e.Status = "later", v1alpha1.GitEventStatus{} }},
		{"a run is forgotten", "I-1: GitEvent e does not know its run e-build any more at resource version 2",
			func(e *v1alpha1.GitEvent) { e.Status.Runs = e.Status.Runs[1:] }},
		{"a create is forgotten", "I-1: GitEvent e takes back at resource version 2 that its run e-build is there",
			func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }},
		{"an end is forgotten", "I-1: GitEvent e takes back at resource version 2 that its run e-build is over",
			func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = nil }},
	} {
		p, e := newTape(t), about(7, 1, "e", "build", "lint")
		e.Status.Runs[0].Result, e.Status.Runs[1].UID = &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}, ""
		p.says(e)
		c.then(e)
		p.says(e)
		judged(t, c.what, c.want, p.Never())
	}
}
