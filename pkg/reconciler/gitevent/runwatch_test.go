// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// desk has both caches, and what the watch has done.
type desk struct {
	*Watch
	events, runs cache.Indexer
	version      int
	woken, gone  []string
}

func newDesk() *desk {
	d := &desk{
		events: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		runs: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
	d.Watch = &Watch{Open: listers.NewGitEventLister(d.events).GitEvents("plumbline"), Runs: d.runs}
	d.Deleted = func(event *v1alpha1.GitEvent, run *pipelinev1.PipelineRun) {
		d.gone = append(d.gone, fmt.Sprint(event.Name, " ", run.Name, " ", run.UID))
	}
	return d
}

func (d *desk) Enqueue(obj any) { d.woken = append(d.woken, obj.(*v1alpha1.GitEvent).Name) }

// next returns an object's next version.
func (d *desk) next() string {
	d.version++
	return fmt.Sprint(d.version)
}

// event stores an event like its informer, and reports it.
func (d *desk) event(name string, runs ...v1alpha1.Run) {
	e := gitevents.Trim(&v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: name, UID: types.UID(name), ResourceVersion: d.next()},
		Status:     v1alpha1.GitEventStatus{Runs: runs},
	})
	before, known, _ := d.events.Get(e)
	_ = d.events.Add(e)
	if known {
		d.OnEvent(d).OnUpdate(before, e)
		return
	}
	d.OnEvent(d).OnAdd(e, false)
}

// run stores a PipelineRun like its informer, and reports it.
func (d *desk) run(namespace, name, uid, event string, change ...func(*pipelinev1.PipelineRun)) {
	whole := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: d.next(),
		Labels: map[string]string{plumbline.EventLabel: event},
	}}
	for _, c := range change {
		c(whole)
	}
	run := pipelineruns.TrimRun(whole)
	before, known, _ := d.runs.Get(run)
	_ = d.runs.Add(run)
	if known {
		d.OnRun(d).OnUpdate(before, run)
		return
	}
	d.OnRun(d).OnAdd(run, false)
}

func (d *desk) deleted(namespace, name string) {
	run, _, _ := d.runs.GetByKey(namespace + "/" + name)
	_ = d.runs.Delete(run)
	d.OnRun(d).OnDelete(cache.DeletedFinalStateUnknown{Key: namespace + "/" + name, Obj: run})
}

func started(run *pipelinev1.PipelineRun) {
	now := metav1.Now()
	run.Status.StartTime = &now
}

func endRun(run *pipelinev1.PipelineRun) {
	now := metav1.Now()
	run.Status.StartTime = &now
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "True"})
}

// planned and recorded are a run before and after it was created.
func plannedRun(name string) v1alpha1.Run { return v1alpha1.Run{Namespace: "team", Name: name} }

func recorded(name, uid string) v1alpha1.Run {
	return v1alpha1.Run{Namespace: "team", Name: name, UID: types.UID(uid)}
}

// S9: a user who may write PipelineRuns may write any label. It wakes nothing, also if it names an
// unsettled event or another object of Plumbline's, and no deletion is recorded.
func TestForeignRunsWakeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk()
	refused := plannedRun("refused")
	refused.Refused = &v1alpha1.Refusal{}
	d.event("push-1", recorded("build", "uid"), refused)
	d.event("push-2")
	d.woken = nil
	for _, label := range []string{"", "sweep", "push-1", "push-2", "gone", "../push-1"} {
		for _, at := range []struct{ namespace, name, uid string }{
			{"team", "other", "u"}, {"elsewhere", "build", "uid"}, {"team", "refused", "u"}, {"team", "build", "another"},
		} {
			d.run(at.namespace, at.name, at.uid, label)
			d.run(at.namespace, at.name, at.uid, label, started)
			d.run(at.namespace, at.name, at.uid, label, endRun)
			d.deleted(at.namespace, at.name)
		}
	}
	if len(d.woken) != 0 || len(d.gone) != 0 {
		t.Errorf("woken %v, noted %v, want nothing", d.woken, d.gone)
	}
}

// A recorded run wakes its event when it starts, finishes, is deleted, or names another event.
func TestRecordedRunWakesItsEvent(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.event("push-1", recorded("build", "uid"))
	d.event("push-2")
	steps := []struct {
		what   string
		change func()
	}{
		{"is there", func() { d.run("team", "build", "uid", "push-1") }},
		{"begins", func() { d.run("team", "build", "uid", "push-1", started) }},
		{"ends", func() { d.run("team", "build", "uid", "push-1", endRun) }},
		{"names another event", func() { d.run("team", "build", "uid", "push-2", endRun) }},
		{"names it again", func() { d.run("team", "build", "uid", "push-1", endRun) }},
		{"is deleted", func() { d.deleted("team", "build") }},
	}
	for _, step := range steps {
		d.woken = nil
		step.change()
		if !slices.Equal(slices.Compact(d.woken), []string{"push-1"}) { // a queue has a key once
			t.Errorf("it %s: woken %v", step.what, d.woken)
		}
	}
	if want := []string{"push-1 build uid"}; !slices.Equal(d.gone, want) {
		t.Errorf("noted as deleted: %v, want %v", d.gone, want)
	}
}

// Between the creation of a run and the record of its UID its planned name counts: its creator may
// have crashed.
func TestPlannedNameWakesUntilTheRunIsRecorded(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.event("push-1", plannedRun("build"))
	d.woken = nil
	d.run("team", "build", "uid", "push-1")
	d.deleted("team", "build")
	if len(d.woken) != 2 || len(d.gone) != 1 {
		t.Errorf("woken %v, noted %v, want both twice and once", d.woken, d.gone)
	}
}

// The two informers report in no order. A run change that comes before the cache links the run to
// its event is covered by the event's own update. An update without such a change wakes nothing,
// because it is the reconciler's own.
func TestEarlyRunChangesWakeTheEvent(t *testing.T) {
	t.Parallel()
	run := func(change ...func(*pipelinev1.PipelineRun)) func(*desk) {
		return func(d *desk) { d.run("team", "build", "uid", "push-1", change...) }
	}
	for what, c := range map[string]struct {
		runs func(*desk)
		then v1alpha1.Run
		want []string
	}{
		"it has begun":                   {run(started), recorded("build", "uid"), []string{"push-1"}},
		"it has ended":                   {run(endRun), recorded("build", "uid"), []string{"push-1"}},
		"it has ended and is unrecorded": {run(endRun), plannedRun("build"), []string{"push-1"}},
		"it was deleted": {
			func(d *desk) { run(endRun)(d); d.deleted("team", "build") }, recorded("build", "uid"), []string{"push-1"},
		},
		"another has its name now": {
			func(d *desk) { d.run("team", "build", "another", "push-1") }, recorded("build", "uid"), []string{"push-1"},
		},
		"it is new":          {run(), recorded("build", "uid"), nil},
		"it is only planned": {func(*desk) {}, plannedRun("build"), nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			d.event("push-1")
			d.woken = nil
			c.runs(d)
			if len(d.woken) != 0 {
				t.Fatalf("woken %v before anybody knows whose it is", d.woken)
			}
			d.event("push-1", c.then)
			if !slices.Equal(d.woken, c.want) {
				t.Errorf("woken %v, want %v", d.woken, c.want)
			}
			d.woken = nil
			d.event("push-1", c.then)
			d.event("push-1", recorded("build", "uid"))
			if len(d.woken) != 0 {
				t.Errorf("woken %v by updates that bring nothing", d.woken)
			}
		})
	}
}
