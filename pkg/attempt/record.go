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
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// Record writes the status of one event: only if it changed, and only over the version that was read.
type Record struct {
	desk       *Desk
	event      *v1alpha1.GitEvent
	waits      *Waits
	received   *v1alpha1.GitEventSpec   // as the API server has it; the event's own is completed by the plan
	stored     *v1alpha1.GitEventStatus // as the API server has it
	readAt     time.Time                // the API server confirmed later than this that we write the newest version
	unrecorded time.Time                // since when a PipelineRun is there that the stored status does not know; zero if there is none
}

// repository is what Kubernetes Events about this event are attached to: the object its tenants can see.
func repositoryOf(event *v1alpha1.GitEvent) runtime.Object {
	ref := event.Spec.Repository
	return &pacv1alpha1.Repository{
		TypeMeta:   metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}

// Write writes the status if it changed. A conflict ends the reconcile: somebody wrote since the live read, so what
// was computed here may be stale; the next reconcile computes anew.
func (r *Record) Write(ctx context.Context) error {
	Summarize(r.event)
	statuslimit.Fit(&r.event.Status)
	if equality.Semantic.DeepEqual(*r.stored, r.event.Status) {
		r.desk.Timers.Note(r.event.Name, r.recording(), nil, r.desk.Clock.Now()) // a write that failed may have landed
		return nil
	}
	return r.waits.Try(r.recording(), func() error { return r.write(ctx) })
}

func (r *Record) write(ctx context.Context) error {
	asked := r.desk.Clock.Now()
	event := *r.event
	event.Spec, event.Payload = *r.received, nil // a write of the status changes neither
	written, err := r.desk.Events.UpdateStatus(ctx, &event, metav1.UpdateOptions{})
	if err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("recording the status of GitEvent %s: %w", r.event.Name, err))
	}
	r.event.ResourceVersion = written.ResourceVersion
	r.desk.Metrics.Recorded(ctx, r.stored, r.event, r.desk.Clock.Now())
	r.stored = r.event.Status.DeepCopy()
	r.readAt, r.unrecorded = asked, time.Time{}
	r.desk.Recorded(r.event)
	for _, n := range r.waits.news {
		r.desk.Recorder.Event(repositoryOf(r.event), corev1.EventTypeWarning, n.wait.Reason, n.message)
		r.desk.Metrics.Waiting(ctx, n.wait.Step, n.wait.Class, n.wait.Reason)
	}
	r.waits.news = nil
	return nil
}

// Paused tells that too much time has passed since the API server confirmed that nobody else writes this event: a
// process that was paused must not send what another has taken over (H6).
func (r *Record) Paused() error {
	if r.desk.Clock.Since(r.readAt) <= Fence {
		return nil
	}
	return &fault.Error{Class: fault.Conflict, Reason: ReasonPaused, Message: "this process was paused; reading again before anything is sent"}
}

// Fence is the longest time between a confirmed read or write of the status and the first post of a check. It is
// below the lease duration of config/ (15 s), after which another replica may act.
const Fence = 10 * time.Second

// ReasonPaused is that of the conflict of a process that was paused.
const ReasonPaused = "Paused"

// recording is the step of writing the status. That a run has ended is news.
func (r *Record) recording() retry.Step {
	ended := 0
	for i := range r.event.Status.Runs {
		if r.event.Status.Runs[i].Result != nil {
			ended++
		}
	}
	return retry.Step{Name: stepRecord, Version: fmt.Sprint(r.event.Status.Plan != nil, ended)}
}

// Unchanged tells whether a plan and the runs are what is stored.
func (r *Record) Unchanged(plan *v1alpha1.Plan, runs []v1alpha1.Run) bool {
	return equality.Semantic.DeepEqual(plan, r.stored.Plan) && equality.Semantic.DeepEqual(runs, r.stored.Runs)
}

// AfterCreate is how long a PipelineRun may be there before it is recorded. An event with few runs pays nothing for it: the
// write that the report needs comes sooner.
const AfterCreate = time.Second

// Made notes that a PipelineRun is there that the stored status does not know; the first of them starts the time.
func (r *Record) Made() {
	if r.unrecorded.IsZero() {
		r.unrecorded = r.desk.Clock.Now()
	}
}

// WriteMade writes what was created if the first of it is there for longer than so long.
func (r *Record) WriteMade(ctx context.Context, after time.Duration) error {
	if r.unrecorded.IsZero() || r.desk.Clock.Since(r.unrecorded) < after {
		return nil
	}
	return r.Write(ctx)
}

// Fresh is called before anything is created. A process that was paused, or had to wait long for an answer, reads the event
// again: another one may have created, recorded and settled it meanwhile.
func (r *Record) Fresh(ctx context.Context) error {
	paused := r.Paused()
	if paused == nil {
		return nil
	}
	asked := r.desk.Clock.Now()
	live, err := r.desk.Events.Get(ctx, r.event.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return paused
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s again: %w", r.event.Name, err))
	}
	if live.UID != r.event.UID || live.ResourceVersion != r.event.ResourceVersion {
		return paused
	}
	r.readAt = asked
	return nil
}
