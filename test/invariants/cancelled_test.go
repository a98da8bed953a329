// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// about is an event of a pull request that was recorded in a second, and has one run "name-run" of each pipeline.
func about(pull, second int64, name string, pipelines ...string) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	e.Spec.Repository.URL, e.Spec.PullRequest = "app", &v1alpha1.PullRequest{Number: pull}
	e.Spec.ReceivedAt = metav1.NewTime(time.Unix(second, 0))
	for _, pipeline := range pipelines {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Namespace: "ns", Name: name + "-" + pipeline, Pipeline: pipeline, UID: "u"})
	}
	return e
}

// command is one that ends what was started before on a pull request, all pipelines if no one is named.
func command(pull, second int64, names ...string) *v1alpha1.GitEvent {
	e := about(pull, second, "command")
	e.Status.Plan = &v1alpha1.Plan{Cancels: &v1alpha1.Cancellation{Names: names, Why: "octocat said so", At: e.Spec.ReceivedAt}}
	return e
}

func (p *tape) says(e *v1alpha1.GitEvent) { p.tell(theEvents, e.Name, e) }

// hears is a version of an event that has taken note of what another one cancels, or of what has superseded it.
func (p *tape) hears(e, from *v1alpha1.GitEvent) {
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

// stops is a version of an event's run that somebody has told to end.
func (p *tape) stops(e *v1alpha1.GitEvent, pipeline string) {
	run := p.made(e.Name+"-"+pipeline, corev1.ConditionUnknown)
	run.Labels[plumbline.EventLabel], run.Spec.Status = e.Name, pipelinev1.PipelineRunSpecStatusCancelledRunFinally
	p.tell(theRuns, run.Name, run)
}

// over is a version of an event whose runs are over.
func (p *tape) over(e *v1alpha1.GitEvent, settled bool) {
	for i := range e.Status.Runs {
		e.Status.Runs[i].Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}
	}
	if settled {
		e.Status.Phase = v1alpha1.PhaseSettled
	}
	p.says(e)
}

// What ends that nobody has cancelled, or that somebody has who may not, and what goes on although it was cancelled, is found, and nothing in
// what is sound.
func TestTheHistoryOfWhatIsCancelled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		play       func(p *tape)
	}{
		{"a command ends what was started before", "", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(e)
			p.says(by)
			p.hears(e, by)
			p.stops(e, "build")
			p.over(e, false)
			p.over(by, true)
		}},
		{"what a command does not name goes on", "", func(p *tape) {
			e, by := about(7, 1, "e", "build", "lint"), command(7, 2, "build")
			p.says(e)
			p.says(by)
			p.hears(e, by)
			p.stops(e, "build")
			e.Status.Runs[0].Result = &v1alpha1.Result{}
			p.says(e)
		}},
		{"a newer commit ends the runs of an older one", "", func(p *tape) {
			e, by := about(7, 1, "e", "build"), about(8, 2, "newer")
			p.says(by)
			p.hears(e, by)
			p.stops(e, "build")
		}},
		{"nobody has cancelled it", "PipelineRun e-build is told to end at resource version 2, and its GitEvent e knows of no cancellation", func(p *tape) {
			e := about(7, 1, "e", "build")
			p.says(e)
			p.stops(e, "build")
		}},
		{"it ends before its event has taken note", "its GitEvent e knows of no cancellation", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(e)
			p.says(by)
			p.stops(e, "build")
			p.hears(e, by)
			p.over(e, true)
		}},
		{"what a command does not name ends", "its GitEvent e knows of no cancellation", func(p *tape) {
			e, by := about(7, 1, "e", "build", "lint"), command(7, 2, "build")
			p.says(by)
			p.hears(e, by)
			p.stops(e, "lint")
			p.over(e, true)
		}},
		{"no event has planned it", "no GitEvent has planned it", func(p *tape) { p.stops(about(7, 1, "e"), "build") }},
		{"a command ends runs of another pull request", "because of GitEvent command (octocat said so), which may not end", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(8, 2)
			p.says(by)
			p.hears(e, by)
			p.stops(e, "build")
		}},
		{"a newer commit of another Repository ends runs", "because of GitEvent newer (superseded by 1234567), which may not end", func(p *tape) {
			e, by := about(7, 1, "e", "build"), about(7, 2, "newer")
			by.Spec.Repository.URL = "other"
			p.says(by)
			p.hears(e, by)
			p.stops(e, "build")
		}},
		{"an event that nobody has seen ends runs", "because of GitEvent command", func(p *tape) {
			e := about(7, 1, "e", "build")
			p.hears(e, command(7, 2))
			p.stops(e, "build")
		}},
		{"a run that was cancelled goes on", "run e-build goes on, and GitEvent command ends it", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(by)
			p.hears(e, by)
		}},
		{"a run that is newer goes on", "", func(p *tape) {
			p.says(about(7, 3, "e", "build"))
			p.says(command(7, 2))
		}},
		{"the event is not told, and its run ends by itself", "GitEvent e does not know that GitEvent command ends its run e-build", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(e)
			p.says(by)
			p.over(by, true)
			p.over(e, true)
		}},
		{"the event had settled before the other one had told all", "", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(e)
			p.says(by)
			p.over(e, true)
			p.over(by, true)
		}},
		{"the event was recorded later, and its run is over", "", func(p *tape) {
			e, by := about(7, 1, "e", "build"), command(7, 2)
			p.says(by)
			p.over(by, true)
			p.over(e, false)
		}},
	} {
		p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns", Patience: time.Minute}}
		c.play(p)
		all := append(p.Never(), p.Cancelled()...)
		found := fmt.Sprint(all)
		if len(all) > 0 && c.want == "" || !strings.Contains(found, c.want) || len(all) > 1 {
			t.Errorf("%s: found %s, want %q", c.what, found, c.want)
		}
	}
}

// What an event has recorded of its runs stays: a process that is behind does not overwrite it.
func TestTheHistoryOfWhatIsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		then       func(e *v1alpha1.GitEvent)
	}{
		{"more is recorded", "", func(e *v1alpha1.GitEvent) { e.Status.Runs[1].UID = "v" }},
		{"what was not made is planned anew", "", func(e *v1alpha1.GitEvent) { e.Status.Runs[1].Name = "again" }},
		{"a delivery that is sent again is recorded anew", "", func(e *v1alpha1.GitEvent) { e.UID, e.Status = "later", v1alpha1.GitEventStatus{} }},
		{"a run is forgotten", "GitEvent e does not know its run e-build any more at resource version 2", func(e *v1alpha1.GitEvent) { e.Status.Runs = e.Status.Runs[1:] }},
		{"a create is forgotten", "that its run e-build is there", func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }},
		{"an end is forgotten", "that its run e-build is over", func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = nil }},
	} {
		p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns"}}
		e := about(7, 1, "e", "build", "lint")
		e.Status.Runs[0].Result, e.Status.Runs[1].UID = &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}, ""
		p.says(e)
		c.then(e)
		p.says(e)
		found := p.Never()
		if len(found) > 1 || len(found) > 0 && (c.want == "" || found[0].Invariant != "I-1") || !strings.Contains(fmt.Sprint(found), c.want) {
			t.Errorf("%s: found %v, want %q", c.what, found, c.want)
		}
	}
}
