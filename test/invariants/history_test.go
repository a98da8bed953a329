// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// limit plays a version of the Repository with its limit, 0 for none, and the runs that have a
// slot.
func (p *tape) limit(words ...string) {
	r := pacv1alpha1.Repository{}
	if limit := int(number(p.t, words[0])); limit > 0 {
		r.Spec.ConcurrencyLimit = &limit
	}
	queue := &pacv1alpha1.Queue{Installation: "ns"}
	for _, run := range words[1:] {
		queue.Slots = append(queue.Slots, pacv1alpha1.Slot{Run: run, Event: "event-of-" + run})
	}
	r.Status.SetQueue("ns", queue)
	p.tell(theRepositories, "app", r)
}

// waits plays an event that was recorded in a second, with runs that wait for a slot.
func (p *tape) waits(words ...string) {
	e := v1alpha1.GitEvent{}
	e.Spec.Repository.Namespace, e.Spec.Repository.Name = "ns", "app"
	e.Spec.ReceivedAt = metav1.NewTime(time.Unix(number(p.t, words[1]), 0))
	for _, run := range words[2:] {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Namespace: "ns", Name: run, Pipeline: run})
		e.Status.Waits = append(e.Status.Waits, v1alpha1.Wait{Step: v1alpha1.StepCreate + run, Reason: concurrencyLimit})
	}
	p.tell(theEvents, words[0], e)
}

// serves gives the only slot to each in turn.
func (p *tape) serves(names ...string) {
	for _, run := range names {
		p.limit("1", run)
		p.runs(run)
		p.ends(run)
	}
	p.limit("1")
}

func (p *tape) holds(names ...string) {
	held := p.made(names[0], corev1.ConditionUnknown)
	held.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	p.tell(theRuns, names[0], held)
}

func (p *tape) again(names ...string) {
	again := p.made(names[0], corev1.ConditionUnknown)
	again.UID = "v"
	p.tell(theRuns, names[0], again)
}

// Each way to break a limit, its order or the number of kept runs is found. A correct history has
// no finding.
func TestHistoryFindsBrokenLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, want string // want is a part of the violation, "" for none
		script     string
	}{
		{"a slot after the other", "", "limit 1; limit 1 a; runs a; ends a; limit 1 b; runs b; ends b; limit 1"},
		{
			"two run at once", "with PipelineRun ns/b at resource version 4 2 of Repository ns/app run",
			"limit 1; limit 1 a; runs a b; ends a b; limit 1",
		},
		{
			"two run at once although both have a slot, given one after the other",
			"ns/b gets a slot at resource version 4: there are 2",
			"limit 1; limit 1 a; runs a; limit 1 a b; ends a; runs b; ends b; limit 1",
		},
		{
			"a held run does not count, and counts when it is let go", "with PipelineRun ns/b at resource version 4 2 of",
			"limit 1 a; holds b; runs a b; ends a b; limit 1",
		},
		{
			"the limit is lowered: those who had slots may still begin", "",
			"limit 3 a b c; runs a; limit 1 a b c; runs b c; ends a b c; limit 1",
		},
		{
			"the limit is lowered, and one more gets a slot", "ns/d gets a slot at resource version 6: there are 3",
			"limit 3 a b c; limit 1 a b c; runs a b; ends a; limit 1 b c d; ends b c d; limit 1",
		},
		{"the limit is raised", "", "limit 1 a; runs a; limit 3 a b; runs b; ends a b; limit 3"},
		{
			"what began while there was no limit gets slots beyond it", "",
			"limit 0; runs a b; limit 1; limit 1 a b; ends a b; limit 1",
		},
		{
			"long after the limit is set more begin", "with PipelineRun ns/c at",
			"limit 0; runs a b; limit 1 a b; later; runs c; ends a b c; limit 1",
		},
		{"first come, first served", "", "limit 1; waits x 1 a-1 a-2; waits y 2 b; later; serves a-1 a-2 b"},
		{
			"the last comes first", "ns/b, recorded at 00:00:02, gets a slot at resource version 4 before ns/a",
			"limit 1; waits x 1 a; waits y 2 b; later; serves b a",
		},
		{
			"of one event the last comes first", "gets a slot at resource version 3 before ns/a-2",
			"limit 1; waits x 1 a-2 a-10; later; serves a-10 a-2",
		},
		{"a run waits for ever", "run ns/a of Repository ns/app is neither there nor over", "limit 1; waits x 1 a"},
		{"a run that waits is cancelled", "", "limit 1; waits x 1 a; waits x 1"},
		{"the event of a run that waits is deleted", "", "limit 1; waits x 1 a; forgets x"},
		{"a slot is lost", "run ns/a keeps a slot of Repository ns/app", "limit 1 a; runs a; ends a"},
		{"a run is made again", "PipelineRun ns/a was made again", "limit 0; runs a; deletes a; again a"},
	} {
		p := newTape(t)
		verbs{
			"limit": p.limit, "waits": p.waits, "serves": p.serves, "holds": p.holds, "again": p.again,
			"runs": p.runs, "ends": p.ends, "deletes": p.deletes,
			"later":   func(...string) { p.at = p.at.Add(max(unlimited, p.Patience)) },
			"forgets": func(words ...string) { p.tell(theEvents, words[0], nil) },
		}.play(t, c.script)
		judged(t, c.what, c.want, append(p.Never(), p.Queue()...))
	}
}

// Tekton's controller may end a PipelineRun once more, and then write another time. The first one
// counts.
func TestFirstEndTimeCounts(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.runs("a", "b")
	first := p.at
	p.ends("a", "a")
	p.deletes("a")
	if ends := p.Ends(); len(ends) != 1 || !ends["a"].Equal(first) {
		t.Errorf("the ends are %v, want only a's, at %v", ends, first)
	}
}
