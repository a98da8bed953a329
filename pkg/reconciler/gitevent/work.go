// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"errors"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// The steps, as status.waits names them.
const (
	stepPlan      = v1alpha1.StepPlan
	stepReport    = v1alpha1.StepReport
	stepRenew     = v1alpha1.StepRenew
	stepAnnotate  = v1alpha1.StepAnnotate
	stepCreate    = v1alpha1.StepCreate
	stepReconcile = v1alpha1.StepReconcile
)

// work is one reconcile of one event: the object as read live, what was learnt on the way, and what to write back.
type work struct {
	r        *Reconciler
	event    *v1alpha1.GitEvent
	received *v1alpha1.GitEventSpec   // as the API server has it; the event's own is completed by the plan
	stored   *v1alpha1.GitEventStatus // as the API server has it
	began    time.Time                // when the reconcile did
	readAt   time.Time                // the API server confirmed later than this that we write the newest version
	config   *config.Config
	log      *zap.SugaredLogger

	client     *provider.Client                   // connected on first use
	loginErr   error                              // why it could not be
	newer      func() (string, error)             // what has superseded the event, asked once; nil while nobody has to know
	release    func()                             // gives the Git host's slot back; nil while none is taken
	manifests  map[string]*pipelinev1.PipelineRun // planned PipelineRuns by name, as far as they were read
	secrets    map[string]string                  // what the plan's markers stand for, read on first use
	live       map[string]*pipelinev1.PipelineRun // PipelineRuns seen in this reconcile by name
	unrecorded time.Time                          // since when a PipelineRun is there that the stored status does not know; zero if there is none
	news       []news                             // told once the change that it is about is recorded

	saw       map[types.NamespacedName]content // the Secrets that were read
	loginName types.NamespacedName             // of them the one with the credentials of the Git service
	tried     bool                             // a step needs an operator's help; skipped: one that does was not tried, it is not its time
	skipped   bool
	repeated  bool // the Git service was not asked, because it has just refused the same
}

// news is a Kubernetes Event: something changed that the tenant should know.
type news struct {
	wait    v1alpha1.Wait
	message string
}

// begin takes the event and the time before it was read: a pause may fall between the API server's answer and us.
func (r *Reconciler) begin(ctx context.Context, event *v1alpha1.GitEvent, asked time.Time) *work {
	event.GetConditionSet().Manage(&event.Status).InitializeConditions()
	w := &work{
		r: r, event: event, received: event.Spec.DeepCopy(), stored: event.Status.DeepCopy(), began: asked, readAt: asked, config: config.FromContext(ctx), log: logging.FromContext(ctx),
		live: map[string]*pipelinev1.PipelineRun{}, saw: map[types.NamespacedName]content{},
	}
	w.pin()
	return w
}

func (w *work) end() {
	if w.release != nil {
		w.release()
	}
	w.remember()
}

// planned tells whether anything is written down; decided, whether nothing of it is open.
func (w *work) planned() bool { return w.event.Status.Plan != nil }
func (w *work) decided() bool { return w.event.Status.Plan.Decided() }

// due runs a step unless a recorded wait says that it is not its time yet; the wait then stays the reason. What waits for
// an operator is tried before its time when something has changed that it may wait for.
func (w *work) due(step string, do func() error) error {
	wait := w.wait(step)
	if wait == nil || wait.NotBefore == nil {
		return do()
	}
	left := w.untilDue(wait)
	if left <= 0 {
		return do()
	}
	w.skipped = w.skipped || wait.Class == fault.Operator.String()
	return &notDue{fault.Throttledf(wait.Reason, left, "%s", wait.Message)}
}

// untilDue returns how long a wait with a time lasts, 0 if what it is for may be tried now.
func (w *work) untilDue(wait *v1alpha1.Wait) time.Duration {
	if wait.Class == fault.Operator.String() && w.r.held.mended(w.event.Name, wait.Reason) {
		return 0
	}
	return max(0, wait.NotBefore.Sub(w.r.clock.Now()))
}

func (w *work) wait(step string) *v1alpha1.Wait {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			return &w.event.Status.Waits[i]
		}
	}
	return nil
}

// settle is the one exit from an error to the status: it records why a step waits and until when, tells the Repository
// once per change of reason, and returns the error for the queue.
func (w *work) settle(step string, err error) error {
	if skipped(err) {
		return err
	}
	err = w.handled(step, err)
	f := fault.Of(err)
	if f == nil {
		w.clear(step)
		return nil
	}
	// After a conflict the next reconcile reads again and knows better what to record; whose turn it is tells nobody anything.
	if f.Class == fault.Conflict || f.Reason == fault.ReasonBusy {
		return err
	}
	if f.Class == fault.Operator {
		w.needsHelp(err, f)
	}
	now := metav1.NewTime(w.r.clock.Now().Truncate(time.Second))
	next := v1alpha1.Wait{Step: step, Class: f.Class.String(), Reason: f.Reason, Message: f.Advice(), Since: now, NotBefore: w.notBefore(f, now)}
	before := w.wait(step)
	if f.Reason != reasonPanic && (before == nil || before.Reason != f.Reason) {
		w.news = append(w.news, news{next, fmt.Sprintf("%s of %s: %s", step, w.event.Name, next.Message)})
	}
	if before == nil {
		w.event.Status.Waits = append(w.event.Status.Waits, next)
		return err
	}
	if before.Reason == f.Reason {
		next.Since = before.Since
		if f.Class == fault.Transient {
			next.Message = before.Message // the first words stand: a text that changes would rewrite the status at each attempt
		}
	}
	*before = next
	return err
}

// handled turns a fault that only an answer to the author or an end of the event could settle into a wait that shows: the
// step gave neither, and the event would be silent for ever.
func (w *work) handled(step string, err error) error {
	f := fault.Of(err)
	if f == nil || f.Class != fault.Invalid && f.Class != fault.Ignored {
		return err
	}
	w.log.Errorw("A step left a refusal without an answer: a defect of Plumbline", "step", step, "reason", f.Reason, "error", f.Message)
	w.r.metrics.unhandled.Add(context.Background(), 1)
	return fault.Operatorf(fault.ReasonUnhandled, "%s (%s), which Plumbline does not handle here: this is a defect of it, please report it", f.Message, f.Reason)
}

// needsHelp notes that an operator has to act. What is said about credentials is said in the words of whoever needs them:
// with what was being done in front of them it would be another text for each event.
func (w *work) needsHelp(err error, f *fault.Error) {
	w.tried = true
	var own *fault.Error
	if namesSecret(f.Reason) && errors.As(err, &own) {
		f.Message = own.Message
	}
	if f.Reason == fault.ReasonCredentialsRefused && !w.repeated {
		w.r.held.refuse(w.attempt(), f, w.r.clock.Now())
	}
}

func (w *work) notBefore(f *fault.Error, now metav1.Time) *metav1.Time {
	wait := f.RetryAfter
	if f.Class == fault.Operator && wait == 0 {
		wait = w.r.operatorRetry()
	}
	if wait == 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(wait))
	return &at
}

func (w *work) clear(step string) {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			w.event.Status.Waits = append(w.event.Status.Waits[:i], w.event.Status.Waits[i+1:]...)
			return
		}
	}
}

// repository is what Kubernetes Events about this event are attached to: the object its tenants can see.
func (w *work) repository() runtime.Object {
	ref := w.event.Spec.Repository
	return &pacv1alpha1.Repository{
		TypeMeta:   metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}

// record writes the status if it changed. A conflict ends the reconcile: somebody wrote since the live read, so what
// was computed here may be stale; the next reconcile computes anew.
func (w *work) record(ctx context.Context) error {
	w.summarize()
	statuslimit.Fit(&w.event.Status)
	if equality.Semantic.DeepEqual(*w.stored, w.event.Status) {
		w.r.retries.Note(w.event.Name, w.recording(), nil, w.r.clock.Now()) // a write that failed may have landed
		return nil
	}
	return w.try(w.recording(), func() error { return w.write(ctx) })
}

func (w *work) write(ctx context.Context) error {
	asked := w.r.clock.Now()
	event := *w.event
	event.Spec = *w.received
	written, err := w.r.events.UpdateStatus(ctx, &event, metav1.UpdateOptions{})
	if err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("recording the status of GitEvent %s: %w", w.event.Name, err))
	}
	w.event.ResourceVersion = written.ResourceVersion
	w.r.metrics.recorded(ctx, w.stored, w.event, w.r.clock.Now())
	w.stored = w.event.Status.DeepCopy()
	w.readAt = asked
	w.recorded()
	for _, n := range w.news {
		w.r.recorder.Event(w.repository(), corev1.EventTypeWarning, n.wait.Reason, n.message)
		w.r.metrics.waiting(ctx, n.wait.Step, n.wait.Class, n.wait.Reason)
	}
	w.news = nil
	return nil
}

// paused tells that too much time has passed since the API server confirmed that nobody else writes this event: a
// process that was paused must not send what another has taken over (H6).
func (w *work) paused() error {
	if w.r.clock.Since(w.readAt) <= fence {
		return nil
	}
	return &fault.Error{Class: fault.Conflict, Reason: reasonPaused, Message: "this process was paused; reading again before anything is sent"}
}

// fence is the longest time between a confirmed read or write of the status and the first post of a check. It is
// below the lease duration of config/ (15 s), after which another replica may act.
const fence = 10 * time.Second
