// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// taskRunLabel is Tekton's label on a PipelineRun's TaskRuns.
const taskRunLabel = "tekton.dev/pipelineRun"

// maxText bounds the bytes of one report; with many runs in one status it is less.
const maxText = 32 << 10

// unwatchedLook is how soon a run is looked at again that is not over and that no watch tells of. Somebody may have given it
// the label of one that is done and reported, or have taken the event's name from it.
const unwatchedLook = 30 * time.Second

// observe stores the terminal state of each run that reached one, before it is sent anywhere.
func (r *Reconciler) observe(ctx context.Context, w *work) error {
	var faults []error
	over := w.turn(shortTurn)
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if run.UID == "" || run.Result != nil {
			continue
		}
		if err := w.recordMade(ctx, recordAfter); err != nil {
			return err
		}
		faults = append(faults, w.try(retry.Step{Name: stepObserve, Of: run.Name}, func() error { return r.observeRun(ctx, w, run, over) }))
	}
	return first(faults)
}

func (r *Reconciler) observeRun(ctx context.Context, w *work, run *v1alpha1.Run, over func() error) error {
	live, err := r.pipelineRun(ctx, w, run)
	if err != nil {
		return err
	}
	if live == nil {
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted, Reason: "PipelineRunDeleted",
			Message: fmt.Sprintf("PipelineRun %s was deleted", run.Name)}
		return nil
	}
	w.live[run.Name] = live
	if !live.IsDone() {
		if !r.watched(w, run) {
			r.wake(w.event.Name, unwatchedLook)
		}
		return nil // its informer wakes us
	}
	if err := over(); err != nil {
		return err
	}
	if live, err = r.whole(ctx, run, live); err != nil {
		return err
	}
	taskRuns, err := r.taskRuns(ctx, run)
	if err != nil {
		return err
	}
	facts, err := r.facts(ctx, taskRuns)
	if err != nil {
		return err
	}
	if w.event.Status.Plan.Secret != "" {
		hide, err := w.hiding(ctx)
		if err != nil {
			return err
		}
		live = live.DeepCopy()
		live.Status.Conditions = hideIn(live.Status.Conditions, hide)
		for _, taskRun := range taskRuns {
			taskRun.Status.Conditions = hideIn(taskRun.Status.Conditions, hide)
		}
	}
	run.Result = status.ResultOf(live, taskRuns, w.config.Console.Links(run.Namespace, run.Name), facts,
		min(maxText, statuslimit.Text(&w.event.Status)))
	return nil
}

// pipelineRun returns the run from the cache, or live when the cache does not have it; nil only when the API server
// says that it does not exist, or that another object has its name now.
func (r *Reconciler) pipelineRun(ctx context.Context, w *work, run *v1alpha1.Run) (*pipelinev1.PipelineRun, error) {
	if live := w.live[run.Name]; live != nil {
		return live, nil
	}
	if cached := r.cached(run); cached != nil {
		return cached, nil
	}
	return r.read(ctx, run)
}

// cached returns the run as far as the cache keeps it (openruns.Trim), nil when the cache does not have it: it is new, it
// is gone, or it carries the label of one that is done and reported.
func (r *Reconciler) cached(run *v1alpha1.Run) *pipelinev1.PipelineRun {
	obj, exists, err := r.runs.GetByKey(run.Namespace + "/" + run.Name)
	if err != nil || !exists {
		return nil
	}
	if cached, ok := obj.(*pipelinev1.PipelineRun); ok && cached.UID == run.UID {
		return cached
	}
	return nil
}

// watched tells whether the change of a run wakes its event: the cache has it, and it names the event still.
func (r *Reconciler) watched(w *work, run *v1alpha1.Run) bool {
	cached := r.cached(run)
	return cached != nil && cached.Labels[plumbline.EventLabel] == w.event.Name
}

// whole returns all of a run that has ended: the report names its tasks. One that is gone meanwhile has ended as the cache
// says.
func (r *Reconciler) whole(ctx context.Context, run *v1alpha1.Run, known *pipelinev1.PipelineRun) (*pipelinev1.PipelineRun, error) {
	live, err := r.read(ctx, run)
	if live == nil || !live.IsDone() {
		return known, err
	}
	return live, err
}

// read returns nil when the API server says that the run does not exist, or that another object has its name now.
func (r *Reconciler) read(ctx context.Context, run *v1alpha1.Run) (*pipelinev1.PipelineRun, error) {
	live, err := r.tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
	}
	if live.UID != run.UID {
		return nil, nil
	}
	return live, nil
}

// taskRuns lists the run's TaskRuns for the report. A cluster that forbids it costs the report its table, not its verdict.
func (r *Reconciler) taskRuns(ctx context.Context, run *v1alpha1.Run) ([]*pipelinev1.TaskRun, error) {
	list, err := r.tekton.TaskRuns(run.Namespace).List(ctx, metav1.ListOptions{LabelSelector: taskRunLabel + "=" + run.Name})
	if err != nil {
		f := fault.FromKube(fault.VerbRead, fmt.Errorf("listing the TaskRuns of %s/%s: %w", run.Namespace, run.Name, err))
		if f.Class == fault.Operator {
			return nil, nil
		}
		return nil, f
	}
	taskRuns := make([]*pipelinev1.TaskRun, len(list.Items))
	for i := range list.Items {
		taskRuns[i] = &list.Items[i]
	}
	return taskRuns, nil
}

// facts looks up which of the Tasks that failed TaskRuns refer to exist, so that Tekton's guess is repeated only if true.
func (r *Reconciler) facts(ctx context.Context, taskRuns []*pipelinev1.TaskRun) (status.Facts, error) {
	facts := status.Facts{TaskExists: map[string]bool{}}
	for _, taskRun := range taskRuns {
		ref := taskRun.Spec.TaskRef
		if !taskRun.IsFailure() || ref == nil || ref.Name == "" || ref.Resolver != "" {
			continue
		}
		_, err := r.tekton.Tasks(taskRun.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err == nil || fault.Gone(err) {
			facts.TaskExists[ref.Name] = err == nil
			continue
		}
		if f := fault.FromKube(fault.VerbRead, err); f.Class != fault.Operator {
			return facts, f
		}
	}
	return facts, nil
}
