// SPDX-License-Identifier: Apache-2.0

// Package observe is the step that stores how runs ended.
package observe

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// MaxText bounds the bytes of one report; with many runs in one status it is less.
const MaxText = 32 << 10

// UnwatchedLook is how soon a run is looked at again that is not over and that no watch tells of.
// Somebody may have given it the label of one that is done and reported, or have taken the event's
// name from it.
const UnwatchedLook = 30 * time.Second

// detailsLimit is for how long a run's verdict waits for its TaskRuns that cannot be read. What
// cannot be read for so long, because there are too many in the namespace or one of them cannot be
// converted, costs the report its table.
const detailsLimit = 10 * time.Minute

// Step takes the runs that exist and have no result, and gives the results of those that are over.
type Step struct {
	Tekton tektonv1.TektonV1Interface
	// Runs is the cache of the PipelineRuns that are not done and reported.
	Runs cache.KeyListerGetter
	// Ended are runs that had ended when they were deleted.
	Ended *Ended
}

// Do stores the terminal state of each run that reached one, before it is sent anywhere.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	var faults []error
	over := a.Turn(attempt.ShortTurn)
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if run.UID == "" || run.Result != nil {
			continue
		}
		if err := a.Record.WriteMade(ctx, attempt.AfterCreate); err != nil {
			return err
		}
		faults = append(faults, a.Waits.Try(observed(run), func() error { return s.observeRun(ctx, a, run, over) }))
	}
	return attempt.First(faults)
}

// observed is the step of looking at one run.
func observed(run *v1alpha1.Run) backoff.Step {
	return backoff.Step{Name: attempt.StepObserve, Of: run.Name}
}

func (s *Step) observeRun(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, over func() error) error {
	live, err := s.pipelineRun(ctx, a, run)
	if err != nil {
		return err
	}
	if live == nil {
		live = s.Ended.Of(run.UID)
	}
	if live == nil {
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted, Reason: "PipelineRunDeleted",
			Message: fmt.Sprintf("PipelineRun %s was deleted", run.Name)}
		return nil
	}
	a.Seen[run.Name] = live
	if !live.IsDone() {
		if !s.watched(a, run) {
			a.Wake(UnwatchedLook)
		}
		return nil // its informer wakes us
	}
	if err := over(); err != nil {
		return err
	}
	if live, err = s.whole(ctx, run, live); err != nil {
		return err
	}
	taskRuns, facts, err := Of(ctx, s.Tekton, run)
	if err != nil && a.Waits.Failing(observed(run)) < detailsLimit {
		return err
	}
	if live, err = withoutSecrets(ctx, a, live, taskRuns); err != nil {
		return err
	}
	run.Result = status.ResultOf(live, taskRuns, a.Config.Console.Links(run.Namespace, run.Name), facts,
		min(MaxText, v1alpha1.Text(&a.Event.Status)))
	return nil
}

// withoutSecrets hides in the conditions what the event's pipelines were given in secret. The run
// is copied, its TaskRuns are ours.
func withoutSecrets(
	ctx context.Context,
	a *attempt.Attempt,
	live *pipelinev1.PipelineRun,
	taskRuns []*pipelinev1.TaskRun,
) (*pipelinev1.PipelineRun, error) {
	if a.Event.Status.Plan.Secret == "" {
		return live, nil
	}
	hide, err := a.Kept.Hiding(ctx)
	if err != nil {
		return nil, err
	}
	live = live.DeepCopy()
	live.Status.Conditions = plans.HideIn(live.Status.Conditions, hide)
	for _, taskRun := range taskRuns {
		taskRun.Status.Conditions = plans.HideIn(taskRun.Status.Conditions, hide)
	}
	return live, nil
}

// pipelineRun returns the run from the cache, or live when the cache does not have it; nil only
// when the API server says that it does not exist, or that another object has its name now.
func (s *Step) pipelineRun(
	ctx context.Context,
	a *attempt.Attempt,
	run *v1alpha1.Run,
) (*pipelinev1.PipelineRun, error) {
	if live := a.Seen[run.Name]; live != nil {
		return live, nil
	}
	if cached := s.cached(run); cached != nil {
		return cached, nil
	}
	return s.read(ctx, run)
}

// cached returns the run as far as the cache keeps it (clients.TrimRun), nil when the cache does
// not have it: it is new, it is gone, or it carries the label of one that is done and reported.
func (s *Step) cached(run *v1alpha1.Run) *pipelinev1.PipelineRun {
	obj, exists, err := s.Runs.GetByKey(run.Namespace + "/" + run.Name)
	if err != nil || !exists {
		return nil
	}
	if cached, ok := obj.(*pipelinev1.PipelineRun); ok && cached.UID == run.UID {
		return cached
	}
	return nil
}

// watched reports whether the change of a run wakes its event: the cache has it, and it names the
// event still.
func (s *Step) watched(a *attempt.Attempt, run *v1alpha1.Run) bool {
	cached := s.cached(run)
	return cached != nil && cached.Labels[plumbline.EventLabel] == a.Event.Name
}

// whole returns all that a report says of a run that has ended. One that is gone meanwhile has
// ended as the cache says.
func (s *Step) whole(
	ctx context.Context,
	run *v1alpha1.Run,
	known *pipelinev1.PipelineRun,
) (*pipelinev1.PipelineRun, error) {
	if pipelineruns.Reportable(known) {
		return known, nil
	}
	live, err := s.read(ctx, run)
	if live == nil || !live.IsDone() {
		return known, err
	}
	return live, err
}

// read returns nil when the API server says that the run does not exist, or that another object has
// its name now.
func (s *Step) read(ctx context.Context, run *v1alpha1.Run) (*pipelinev1.PipelineRun, error) {
	live, err := s.Tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
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
