// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// tape plays versions to a history, a second after each other.
type tape struct {
	History
	t        *testing.T
	revision int64
	at       time.Time
}

func (p *tape) tell(resource, name string, object any) {
	p.t.Helper()
	v := cluster.Version{Resource: resource, Namespace: "ns", Name: name} // in which Plumbline is, too
	if object != nil {
		var err error
		if v.Object, err = json.Marshal(object); err != nil {
			p.t.Fatal(err)
		}
	}
	p.revision++
	p.at = p.at.Add(time.Second)
	v.Revision, v.At = p.revision, p.at
	p.Saw(v)
}

// limit is a version of the Repository with its limit, 0 for none, and the runs that have a slot.
func (p *tape) limit(limit int, slots ...string) {
	r := pacv1alpha1.Repository{}
	if limit > 0 {
		r.Spec.ConcurrencyLimit = &limit
	}
	queue := &pacv1alpha1.Queue{Installation: "ns"}
	for _, run := range slots {
		queue.Slots = append(queue.Slots, pacv1alpha1.Slot{Run: run, Event: "event-of-" + run})
	}
	r.Status.SetQueue("ns", queue)
	p.tell(theRepositories, "app", r)
}

// waits is an event that was recorded in a second, with runs that wait for a slot.
func (p *tape) waits(event string, second int64, runs ...string) {
	e := v1alpha1.GitEvent{}
	e.Spec.Repository.Namespace, e.Spec.Repository.Name, e.Spec.ReceivedAt = "ns", "app", metav1.NewTime(time.Unix(second, 0))
	for _, run := range runs {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Namespace: "ns", Name: run, Pipeline: run})
		e.Status.Waits = append(e.Status.Waits, v1alpha1.Wait{Step: v1alpha1.StepCreate + run, Reason: concurrencyLimit})
	}
	p.tell(theEvents, event, e)
}

func (p *tape) made(name string, state corev1.ConditionStatus) pipelinev1.PipelineRun {
	run := pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
		Labels:      map[string]string{plumbline.InstallationLabel: "ns"},
		Annotations: map[string]string{pipelinesascode.Repository: "app", pipelinesascode.OriginalPRName: "p", pipelinesascode.MaxKeepRuns: "1"},
	}}
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: state})
	if state != corev1.ConditionUnknown {
		run.Status.CompletionTime = &metav1.Time{Time: p.at}
	}
	return run
}

func (p *tape) runs(names ...string) {
	for _, name := range names {
		p.tell(theRuns, name, p.made(name, corev1.ConditionUnknown))
	}
}

func (p *tape) ends(names ...string) {
	for _, name := range names {
		p.tell(theRuns, name, p.made(name, corev1.ConditionTrue))
	}
}

func (p *tape) deletes(name string) { p.tell(theRuns, name, nil) }

// Each way to break a limit, its order or what is kept is found, and nothing in what is sound.
func TestTheHistoryOfALimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		play       func(p *tape)
	}{
		{"a slot after the other", "", func(p *tape) {
			p.limit(1)
			p.limit(1, "a")
			p.runs("a")
			p.ends("a")
			p.limit(1, "b")
			p.runs("b")
			p.ends("b")
			p.limit(1)
		}},
		{"two run at once", "with PipelineRun ns/b at resource version 4 2 of Repository ns/app run", func(p *tape) {
			p.limit(1)
			p.limit(1, "a")
			p.runs("a", "b")
			p.ends("a", "b")
			p.limit(1)
		}},
		{"two run at once although both have a slot, given one after the other", "ns/b gets a slot at resource version 4: there are 2", func(p *tape) {
			p.limit(1)
			p.limit(1, "a")
			p.runs("a")
			p.limit(1, "a", "b")
			p.ends("a")
			p.runs("b")
			p.ends("b")
			p.limit(1)
		}},
		{"a held run does not count, and counts when it is let go", "with PipelineRun ns/b at resource version 4 2 of", func(p *tape) {
			p.limit(1, "a")
			held := p.made("b", corev1.ConditionUnknown)
			held.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
			p.tell(theRuns, "b", held)
			p.runs("a", "b")
			p.ends("a", "b")
			p.limit(1)
		}},
		{"the limit is lowered: those who had slots may still begin", "", func(p *tape) {
			p.limit(3, "a", "b", "c")
			p.runs("a")
			p.limit(1, "a", "b", "c")
			p.runs("b", "c")
			p.ends("a", "b", "c")
			p.limit(1)
		}},
		{"the limit is lowered, and one more gets a slot", "ns/d gets a slot at resource version 6: there are 3", func(p *tape) {
			p.limit(3, "a", "b", "c")
			p.limit(1, "a", "b", "c")
			p.runs("a", "b")
			p.ends("a")
			p.limit(1, "b", "c", "d")
			p.ends("b", "c", "d")
			p.limit(1)
		}},
		{"the limit is raised", "", func(p *tape) {
			p.limit(1, "a")
			p.runs("a")
			p.limit(3, "a", "b")
			p.runs("b")
			p.ends("a", "b")
			p.limit(3)
		}},
		{"what began while there was no limit gets slots beyond it", "", func(p *tape) {
			p.limit(0)
			p.runs("a", "b")
			p.limit(1)
			p.limit(1, "a", "b")
			p.ends("a", "b")
			p.limit(1)
		}},
		{"long after the limit is set more begin", "with PipelineRun ns/c at", func(p *tape) {
			p.limit(0)
			p.runs("a", "b")
			p.limit(1, "a", "b")
			p.at = p.at.Add(unlimited)
			p.runs("c")
			p.ends("a", "b", "c")
			p.limit(1)
		}},
		{"first come, first served", "", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a-1", "a-2")
			p.waits("y", 2, "b")
			p.at = p.at.Add(p.Patience)
			for _, run := range []string{"a-1", "a-2", "b"} {
				p.limit(1, run)
				p.runs(run)
				p.ends(run)
			}
			p.limit(1)
		}},
		{"the last comes first", "ns/b, recorded at 00:00:02, gets a slot at resource version 4 before ns/a", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a")
			p.waits("y", 2, "b")
			p.at = p.at.Add(p.Patience)
			for _, run := range []string{"b", "a"} {
				p.limit(1, run)
				p.runs(run)
				p.ends(run)
			}
			p.limit(1)
		}},
		{"of one event the last comes first", "gets a slot at resource version 3 before ns/a-2", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a-2", "a-10")
			p.at = p.at.Add(p.Patience)
			for _, run := range []string{"a-10", "a-2"} {
				p.limit(1, run)
				p.runs(run)
				p.ends(run)
			}
			p.limit(1)
		}},
		{"a run waits for ever", "run ns/a of Repository ns/app is neither there nor over", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a")
		}},
		{"a run that waits is cancelled", "", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a")
			p.waits("x", 1)
		}},
		{"the event of a run that waits is deleted", "", func(p *tape) {
			p.limit(1)
			p.waits("x", 1, "a")
			p.tell(theEvents, "x", nil)
		}},
		{"a slot is lost", "run ns/a keeps a slot of Repository ns/app", func(p *tape) {
			p.limit(1, "a")
			p.runs("a")
			p.ends("a")
		}},
		{"a run is made again", "PipelineRun ns/a was made again", func(p *tape) {
			p.limit(0)
			p.runs("a")
			p.deletes("a")
			again := p.made("a", corev1.ConditionUnknown)
			again.UID = "v"
			p.tell(theRuns, "a", again)
		}},
	} {
		p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns", Patience: time.Minute}}
		c.play(p)
		found := fmt.Sprint(append(p.Never(), p.Queue()...))
		if found != "[]" && c.want == "" || !strings.Contains(found, c.want) || strings.Count(found, "I-") > 1 {
			t.Errorf("%s: found %s, want %q", c.what, found, c.want)
		}
	}
}

// Tekton's controller may end a PipelineRun once more, and write another time then: it was over by the first one.
func TestAnEndIsWrittenAgain(t *testing.T) {
	t.Parallel()
	p := &tape{t: t, at: time.Unix(1000, 0).UTC(), History: History{Installation: "ns"}}
	p.runs("a", "b")
	first := p.at
	p.ends("a")
	p.ends("a")
	p.deletes("a")
	if ends := p.Ends(); len(ends) != 1 || !ends["a"].Equal(first) {
		t.Errorf("the ends are %v, want only a's, at %v", ends, first)
	}
}
