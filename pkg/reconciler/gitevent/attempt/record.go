// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// Record writes the status of one event, only if it changed, and only over the known version.
type Record struct {
	// AddIntents adds to a new plan what will be sent because of it, so that one write stores both.
	// The returned function is called after that write.
	AddIntents func() (written func())

	state      *State
	event      *v1alpha1.GitEvent
	waits      *Waits
	received   *v1alpha1.GitEventSpec   // as the API server has it; the plan completes the event's own
	stored     *v1alpha1.GitEventStatus // as the API server has it
	confirmed  time.Time                // the API server has confirmed after this time that we write the newest version
	unrecorded time.Time                // since when a PipelineRun is missing in the stored status; or zero
}

// repositoryOf returns what Kubernetes Events about this event are attached to: the object that its
// tenants can see.
func repositoryOf(event *v1alpha1.GitEvent) runtime.Object {
	ref := event.Spec.Repository
	return &pacv1alpha1.Repository{
		TypeMeta:   metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}

// WritePlan is Write for a new plan.
func (r *Record) WritePlan(ctx context.Context) error {
	written := r.AddIntents()
	err := r.Write(ctx)
	if err == nil {
		written()
	}
	return err
}

// Write writes the status if it changed. A conflict ends the reconcile: the event has another
// version, so what was computed here may be stale. The next reconcile reads the event and computes
// again.
func (r *Record) Write(ctx context.Context) error {
	Summarize(r.event)
	v1alpha1.Fit(&r.event.Status)
	if !r.changed() {
		r.state.Timers.Note(r.event.Name, r.recording(), nil, r.state.Clock.Now()) // a write that failed may have succeeded
		return nil
	}
	return r.waits.WithBackoff(r.recording(), func() error { return r.write(ctx) })
}

// changed reports whether there is something to write. A PipelineRun's patch, and that it owns its
// secret, are only written together with something else. A process that does not know them patches
// once more, which changes nothing.
func (r *Record) changed() bool {
	if equality.Semantic.DeepEqual(*r.stored, r.event.Status) {
		return false
	}
	stored := r.stored.DeepCopy()
	for i := range min(len(stored.Runs), len(r.event.Status.Runs)) {
		stored.Runs[i].Patched = r.event.Status.Runs[i].Patched
		stored.Runs[i].SecretOwned = r.event.Status.Runs[i].SecretOwned
		for j := range min(len(stored.Runs[i].Attempts), len(r.event.Status.Runs[i].Attempts)) {
			stored.Runs[i].Attempts[j].Patched = r.event.Status.Runs[i].Attempts[j].Patched
		}
	}
	if !equality.Semantic.DeepEqual(*stored, r.event.Status) {
		return true
	}
	event := *r.event
	event.Spec = *r.received
	r.state.Cache.Put(&event, r.confirmed)
	return false
}

func (r *Record) write(ctx context.Context) error {
	asked := r.state.Clock.Now()
	event := *r.event
	event.Spec, event.Payload = *r.received, nil // a write of the status changes neither
	written, err := r.state.Events.UpdateStatus(ctx, &event, metav1.UpdateOptions{})
	if err != nil {
		r.state.Cache.Forget(r.event.Name) // this write, or another process's, may have succeeded
		refused := fault.FromKube(fault.VerbUpdate, fmt.Errorf("recording the status of GitEvent %s: %w", r.event.Name, err))
		// The status cannot say that it waits. The API server's message may contain the event.
		if refused.Class == fault.Operator {
			r.waits.log.Errorw("The status of an event is refused", "event", r.event.Name, "reason", refused.Reason)
		}
		return refused
	}
	r.event.ResourceVersion = written.ResourceVersion
	r.state.Metrics.Recorded(ctx, r.stored, r.event, r.state.Clock.Now())
	r.addFacts()
	r.stored = r.event.Status.DeepCopy()
	r.confirmed, r.unrecorded = asked, time.Time{}
	r.state.Cache.Put(written, asked)
	r.state.Stored(r.event)
	for _, n := range r.waits.events {
		if n.normal {
			r.state.Recorder.Event(repositoryOf(r.event), corev1.EventTypeNormal, n.wait.Reason, n.message)
			continue
		}
		r.state.Recorder.Event(repositoryOf(r.event), corev1.EventTypeWarning, n.wait.Reason, n.message)
		if !n.fact {
			r.state.Metrics.Waiting(ctx, n.wait.Step, n.wait.Class, n.wait.Reason)
		}
	}
	r.waits.events = nil
	return nil
}

// recording names the write of the status. A finished run is another version of that step.
func (r *Record) recording() backoff.Step {
	ended := 0
	for i := range r.event.Status.Runs {
		if r.event.Status.Runs[i].Result != nil {
			ended++
		}
	}
	return backoff.Step{Name: stepRecord, Version: fmt.Sprint(r.event.Status.Plan != nil, ended)}
}

// Stored returns the stored record of a check, nil if there is none.
func (r *Record) Stored(key string) *v1alpha1.Check { return checkOf(r.stored, key) }

// Unchanged reports whether a plan and the runs are what is stored.
func (r *Record) Unchanged(plan *v1alpha1.Plan, runs []v1alpha1.Run) bool {
	return equality.Semantic.DeepEqual(plan, r.stored.Plan) && equality.Semantic.DeepEqual(runs, r.stored.Runs)
}

// MaxUnrecorded is how long a PipelineRun may exist before it is recorded, unless its first report
// takes longer. An event with few runs pays nothing for it: its runs are recorded together with the
// answer to that report.
const MaxUnrecorded = time.Second

// NoteCreated notes that a PipelineRun exists that the stored status does not know. The first of
// them starts the time.
func (r *Record) NoteCreated() {
	if r.unrecorded.IsZero() {
		r.unrecorded = r.state.Clock.Now()
	}
}

// WriteCreated writes the status if it does not have all PipelineRuns that exist.
func (r *Record) WriteCreated(ctx context.Context) error {
	if r.unrecorded.IsZero() {
		return nil
	}
	return r.Write(ctx)
}

// WriteOverdue is WriteCreated once the first unrecorded PipelineRun has existed for MaxUnrecorded.
func (r *Record) WriteOverdue(ctx context.Context) error {
	if r.state.Clock.Since(r.unrecorded) < MaxUnrecorded {
		return nil
	}
	return r.WriteCreated(ctx)
}
