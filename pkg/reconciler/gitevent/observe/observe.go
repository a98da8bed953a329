// SPDX-License-Identifier: Apache-2.0

// Package observe is the step that stores the results of finished PipelineRuns.
package observe

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// MaxText bounds the bytes of one report; with many runs in one status the bound is lower.
const MaxText = 32 << 10

// UnwatchedPoll is how soon an unfinished run that no watch reports is read again. A user may
// have given it the label of a finished and reported run, or have removed the event's name from it.
const UnwatchedPoll = 30 * time.Second

// detailsLimit is how long a run's result waits for TaskRuns that cannot be read. After that, for
// example because the namespace has too many or one cannot be converted, the report has no table.
const detailsLimit = 10 * time.Minute

// Step takes the runs that exist and have no result, and stores the results of the finished ones.
type Step struct {
	Tekton tektonv1.TektonV1Interface
	Pods   corev1client.PodsGetter
	// Runs is the cache of the PipelineRuns that are not finished and reported.
	Runs cache.KeyListerGetter
	// Deleted are finished runs that were deleted.
	Deleted *DeletedRuns
	Metrics *metrics.Metrics
	// Logs returns what a new result says of its log.
	Logs func(*attempt.Attempt, *v1alpha1.Result) *v1alpha1.RunLog
}

// Input is what the observation of one run depends on.
type Input struct {
	Event string // the GitEvent's name
	Run   v1alpha1.Run
	// Seen is the PipelineRun as this reconcile has seen it, nil if it has not.
	Seen  *pipelinev1.PipelineRun
	Links status.Links
	// MaxText bounds the text of the result.
	MaxText int
	// Failing is how long observing this run has failed.
	Failing time.Duration
	// Exceeded returns an error if the step has no time left to read what a report needs.
	Exceeded func() error
	// Hiding returns what removes secret values from a text; nil if the event's pipelines got none.
	Hiding func(context.Context) (func(string) string, error)
}

// Output is what an observation has found out.
type Output struct {
	// Seen is the PipelineRun as it is, nil if it is not known.
	Seen *pipelinev1.PipelineRun
	// Result is set once the run is finished or deleted.
	Result *v1alpha1.Result
	// Deleted is true if the PipelineRun is gone; Seen is then its last state, if that is known.
	Deleted bool
	// Unwatched is true for an unfinished run whose changes do not wake the event.
	Unwatched bool
}

// Do stores the result of each finished run before it is sent anywhere.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	exceeded := a.TimeLimit(attempt.ShortLimit)
	return attempt.Merge(attempt.Each(ctx, unfinished(&a.Event.Status), a.Record.WriteOverdue,
		func(ctx context.Context, run *v1alpha1.Run) error {
			step := backoff.Step{Name: attempt.StepObserve, Of: run.Name}
			return a.Waits.WithBackoff(step, func() error {
				in := input(a, run, a.Waits.FailingFor(step))
				in.Exceeded = exceeded
				out, err := s.Observe(ctx, in)
				if out.Seen != nil {
					a.Seen[run.Name] = out.Seen
				}
				if out.Unwatched {
					a.Wake(UnwatchedPoll)
				}
				if out.retries(run) && a.Event.Cancelled(run.Pipeline) == nil {
					return s.retry(ctx, a, run, out.Result)
				}
				if run.Result = out.Result; run.Result != nil {
					run.Result.Log = s.Logs(a, run.Result)
				}
				return err
			})
		}))
}

// retries reports whether another attempt replaces a run: it has failed because of the cluster, and
// no user has cancelled or deleted it.
func (o *Output) retries(run *v1alpha1.Run) bool {
	return run.Retries() && o.Result != nil && o.Result.Outcome == v1alpha1.OutcomeFailed &&
		o.Result.Verdict == v1alpha1.VerdictInfrastructure && !o.Deleted && o.Seen.DeletionTimestamp.IsZero() &&
		o.Seen.Spec.Status == ""
}

// retry stores that another attempt replaces a run before anything is done for it. The next
// reconcile creates its PipelineRun.
func (s *Step) retry(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, failed *v1alpha1.Result) error {
	before := *run
	run.Retry(resources.AttemptName(run.Key(), run.Attempt()+1), failed)
	if err := a.Record.Write(ctx); err != nil { // the next reconcile observes and decides again
		*run = before
		return err
	}
	s.Metrics.Retried(ctx)
	a.Wake(0)
	return nil
}

// unfinished returns the runs that exist and have no result.
func unfinished(s *v1alpha1.GitEventStatus) (runs []*v1alpha1.Run) {
	for i := range s.Runs {
		if run := &s.Runs[i]; run.UID != "" && run.Result == nil {
			runs = append(runs, run)
		}
	}
	return runs
}

func input(a *attempt.Attempt, run *v1alpha1.Run, failing time.Duration) Input {
	in := Input{
		Event:   a.Event.Name,
		Run:     *run,
		Seen:    a.Seen[run.Name],
		Links:   a.Config.Console.Links(*run),
		MaxText: min(MaxText, v1alpha1.ReportLimit(&a.Event.Status)),
		Failing: failing,
	}
	if a.Event.Status.Plan.Secret != "" {
		in.Hiding = a.StoredPlan.Hiding
	}
	return in
}

// Observe finds out whether a run is finished, and its result. It changes nothing.
func (s *Step) Observe(ctx context.Context, in Input) (out Output, err error) {
	live, err := s.pipelineRun(ctx, in)
	if err != nil {
		return out, err
	}
	if out.Deleted = live == nil; out.Deleted {
		live = s.Deleted.Get(in.Run.UID)
	}
	if live == nil {
		out.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted, Reason: "PipelineRunDeleted",
			Message: fmt.Sprintf("PipelineRun %s was deleted", in.Run.Name)}
		return out, nil
	}
	out.Seen = live
	if !live.IsDone() {
		out.Unwatched = !s.watched(in)
		return out, nil // its informer wakes the event
	}
	if err := in.Exceeded(); err != nil {
		return out, err
	}
	out.Result, err = s.result(ctx, in, live)
	return out, err
}

// result reads all that a report says of a finished run.
func (s *Step) result(ctx context.Context, in Input, live *pipelinev1.PipelineRun) (*v1alpha1.Result, error) {
	live, err := s.whole(ctx, &in.Run, live)
	if err != nil {
		return nil, err
	}
	taskRuns, facts, err := readTaskRuns(ctx, s.Tekton, s.Pods, &in.Run)
	if err != nil && in.Failing < detailsLimit {
		return nil, err
	}
	if in.Hiding != nil {
		if live, err = withoutSecrets(ctx, in.Hiding, live, taskRuns); err != nil {
			return nil, err
		}
	}
	return status.ResultOf(live, taskRuns, in.Links, facts, in.MaxText), nil
}

// withoutSecrets removes from the conditions the secret values that the event's pipelines were
// given. It copies the run, which may be the cache's. The TaskRuns are ours.
func withoutSecrets(
	ctx context.Context, hiding func(context.Context) (func(string) string, error),
	live *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun,
) (*pipelinev1.PipelineRun, error) {
	hide, err := hiding(ctx)
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

// pipelineRun returns the run from the cache, or from the API server if the cache does not have it.
// It returns nil only if the API server says that the run does not exist, or that another object
// has its name now.
func (s *Step) pipelineRun(ctx context.Context, in Input) (*pipelinev1.PipelineRun, error) {
	if in.Seen != nil {
		return in.Seen, nil
	}
	if cached := s.cached(&in.Run); cached != nil {
		return cached, nil
	}
	return s.read(ctx, &in.Run)
}

// cached returns the run as far as the cache keeps it (pipelineruns.TrimRun). It returns nil if the
// cache does not have the run: it is new, it is gone, or its label says that it is finished and
// reported.
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

// watched reports whether a change of the run wakes its event: the cache has the run, and the run
// still names the event.
func (s *Step) watched(in Input) bool {
	cached := s.cached(&in.Run)
	return cached != nil && cached.Labels[plumbline.EventLabel] == in.Event
}

// whole returns all that a report says of a finished run. If the run is gone by now it has finished
// as the cache says.
func (s *Step) whole(
	ctx context.Context, run *v1alpha1.Run, known *pipelinev1.PipelineRun,
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

// read returns nil if the API server says that the run does not exist, or that another object has
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
