// SPDX-License-Identifier: Apache-2.0

// Package prune deletes finished PipelineRuns beyond the number that is kept of their pipeline. An
// event prunes when nothing else is left to do but to settle: it reports the last run to finish. It
// deletes only runs that an event has recorded and whose result the Git service has accepted. See
// docs/adr/0040.
package prune

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
)

const (
	// ReasonNotPruned is the reason of the wait of an event that could not delete what is not kept.
	ReasonNotPruned = "NotPruned"
	// GiveUp is how long an event stays unsettled because of that. The pipeline's next event
	// deletes what is left.
	GiveUp = time.Hour
	// page is how many PipelineRuns are listed at once, without their specs: a user who creates one
	// may give it a mebibyte of labels and annotations. maxListed bounds the runs of one pipeline
	// that one attempt reads, and maxText what is kept of each of their annotations. Runs that are
	// not read make it delete less, never more.
	page      = 50
	maxListed = 10_000
	maxText   = 1 << 10
	// maxReads is how many events and runs one attempt reads to learn that runs are finished. The
	// next attempt continues.
	maxReads = 300
	// maxFruitless is how many of these may return nothing final, because the event that a run
	// names is unsettled or gone. Each event would read them again, and a user who may label
	// PipelineRuns could cause any number of these calls.
	maxFruitless = 50
	// maxKnown bounds the verdicts that are remembered, some 250 bytes each. What is evicted is
	// read again.
	maxKnown = 50_000
)

// Step deletes runs of the pipelines of an event whose runs are finished and reported.
type Step struct {
	// Tekton deletes runs, and reads the runs whose event is deleted.
	Tekton tektonv1.PipelineRunsGetter
	// Runs lists them, without their specs.
	Runs metadata.Getter
	// Events are read live.
	Events plumblineclient.GitEventsGetter
	// Open returns the unsettled events of a Repository from a cache.
	Open func(namespace, name string) []*v1alpha1.GitEvent

	// known are the final verdicts of this process, so that each run is read once and not each time
	// that its pipeline is pruned.
	known *recent.Map[types.UID, verdict]
}

// New returns a step with an empty cache.
func New(c deps.Cluster) *Step {
	known := &recent.Map[types.UID, verdict]{Max: maxKnown}
	return &Step{Tekton: c.Tekton, Runs: c.Tekton.Metadata, Events: c.Plumbline, Open: c.Open.Of, known: known}
}

// Do deletes what is not kept of the pipelines of the event's runs. Whatever refuses a deletion, it
// is retried with the workqueue's backoff, until GiveUp or until a later event can do it. What is
// refused for a Repository must not keep all of its events unsettled: it may have no more than a
// thousand. It is never reported.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	err := a.Waits.Run(v1alpha1.StepPrune, func() error {
		return a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepPrune}, func() error { return s.prune(ctx, a) })
	})
	wait := a.Waits.Of(v1alpha1.StepPrune)
	switch {
	case err == nil || wait == nil:
		return err
	case wait.Reason == ReasonNotPruned && laterEventsPrune(a.Event, s.open(a.Event), a.Config.Retention):
		logging.FromContext(ctx).Infow("Pruning is left to a later event", "event", a.Event.Name, "message", wait.Message)
	case a.Clock.Since(wait.Since.Time) < GiveUp:
		return err
	default:
		logging.FromContext(ctx).
			Errorw("Pruning is given up; the pipeline's next event tries again", "event", a.Event.Name, "message", wait.Message)
	}
	a.Waits.Clear(v1alpha1.StepPrune)
	return nil
}

// open returns the unsettled events of an event's Repository, as far as the cache knows.
func (s *Step) open(event *v1alpha1.GitEvent) []*v1alpha1.GitEvent {
	return s.Open(event.Spec.Repository.Namespace, event.Spec.Repository.Name)
}

// laterEventsPrune reports whether each pipeline that the event prunes has a run of a later
// unsettled event that will prune it, too. It counts only later events, so that no two events leave
// it to each other: the last one does it.
func laterEventsPrune(event *v1alpha1.GitEvent, open []*v1alpha1.GitEvent, kept config.Retention) bool {
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if _, limited := kept.For(run.MaxKeepRuns); !run.Started() || !limited {
			continue
		}
		if !slices.ContainsFunc(open, func(later *v1alpha1.GitEvent) bool {
			return later.Spec.Repository.UID == event.Spec.Repository.UID && isLater(later, event) && prunes(later, run, kept)
		}) {
			return false
		}
	}
	return true
}

func isLater(event, than *v1alpha1.GitEvent) bool {
	return cmp.Or(event.RecordedAt().Compare(than.RecordedAt()), cmp.Compare(event.Name, than.Name)) > 0
}

// prunes reports whether an event has a run of the same pipeline as another one, of which not all
// runs are kept.
func prunes(event *v1alpha1.GitEvent, as *v1alpha1.Run, kept config.Retention) bool {
	return !event.Settled() && slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
		_, limited := kept.For(run.MaxKeepRuns)
		return limited && run.Started() && run.Namespace == as.Namespace && resources.SamePipeline(run.Pipeline, as.Pipeline)
	})
}

// input is what it depends on which runs of a pipeline are deleted.
type input struct {
	event *v1alpha1.GitEvent // the event that prunes
	run   *v1alpha1.Run      // its run of the pipeline
	keep  int                // how many finished runs are kept
	// retention is the age from which settled events may be deleted.
	retention time.Duration
	now       time.Time
	// exceeded returns an error if the step has no time left to read more.
	exceeded func() error
}

func (s *Step) prune(ctx context.Context, a *attempt.Attempt) error {
	var faults []error
	exceeded := a.TimeLimit(attempt.LongLimit)
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		keep, limited := a.Config.Retention.For(run.MaxKeepRuns)
		if !run.Started() || !limited || keep >= maxListed { // no more are listed, so all are kept
			continue
		}
		old, err := s.excess(ctx, input{a.Event, run, keep, a.Config.SettledRetention, a.Clock.Now(), exceeded})
		faults = append(faults, err)
		more := true
		faults = append(faults, attempt.Each(ctx,
			attempt.Rotated(a.Waits.Of(v1alpha1.StepPrune) != nil, old),
			func(ctx context.Context) error {
				err := exceeded()
				if err == nil {
					err = a.Record.Confirm(ctx)
				}
				more = err == nil
				return err
			}, s.remove)...)
		if !more {
			break
		}
	}
	return attempt.Merge(faults)
}

// excess returns the finished runs of a pipeline beyond those that are kept. It may return an error
// with them. It changes nothing.
func (s *Step) excess(ctx context.Context, in input) ([]prunable, error) {
	listed, err := s.list(ctx, in)
	if err != nil || len(listed) <= in.keep || plannedByOldVersion(in.run, listed) {
		return nil, err
	}
	all, err := s.finished(ctx, in, listed)
	return all[:max(0, len(all)-in.keep)], err
}

// plannedByOldVersion reports whether a version that recorded no max-keep-runs has planned the run,
// although its author wrote the annotation. That is not the default.
func plannedByOldVersion(run *v1alpha1.Run, listed []metav1.ObjectMeta) bool {
	return run.MaxKeepRuns == nil && slices.ContainsFunc(listed, func(object metav1.ObjectMeta) bool {
		_, written := object.Annotations[pipelinesascode.MaxKeepRuns]
		return written && object.UID == run.UID
	})
}

// remove deletes one run, if it is still the same object. Its TaskRuns, its pods and its git-auth
// secret are deleted with it.
func (s *Step) remove(ctx context.Context, old prunable) error {
	background := metav1.DeletePropagationBackground
	err := s.Tekton.PipelineRuns(old.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &old.UID}, PropagationPolicy: &background,
	})
	if err == nil || fault.Gone(err) {
		logging.FromContext(ctx).Infow("Pruned", "namespace", old.Namespace, "pipelinerun", old.Name)
		s.known.Delete(old.UID)
		return nil
	}
	return notPruned(fault.VerbDelete, fmt.Errorf("deleting pipelinerun %s/%s: %w", old.Namespace, old.Name, err))
}

// notPruned keeps the message of a refusal and turns it into a Transient fault, which the workqueue
// retries, whatever refused it (docs/adr/0003).
func notPruned(verb fault.Verb, err error) error {
	return fault.Transientf(ReasonNotPruned, "%s", fault.FromKube(verb, err).Message)
}

// list returns the runs whose labels say that they are of a run's pipeline and that are not being
// deleted. Whether they are finished is recorded in their events: the label for that is patched
// onto them, which may be refused.
func (s *Step) list(ctx context.Context, in input) ([]metav1.ObjectMeta, error) {
	repository, run := in.event.Spec.Repository.Name, in.run
	selector := resources.PipelineRuns(in.event.Namespace, repository, run.Pipeline)
	options := metav1.ListOptions{LabelSelector: selector, Limit: page}
	var found []metav1.ObjectMeta
	for looked := 0; looked < maxListed; {
		list, err := s.Runs.Namespace(run.Namespace).List(ctx, options)
		if err != nil {
			return nil, notPruned(fault.VerbRead, fmt.Errorf("listing pipelineruns of %s: %w", run.Namespace, err))
		}
		looked += len(list.Items)
		for i := range list.Items {
			if object := &list.Items[i]; object.DeletionTimestamp.IsZero() &&
				resources.RunOf(&object.ObjectMeta, repository, run.Pipeline) {
				found = append(found, trimmed(&object.ObjectMeta))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	return found, nil
}

// trimmed returns what is needed of a listed run.
func trimmed(whole *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: whole.Namespace, Name: whole.Name, UID: whole.UID, CreationTimestamp: whole.CreationTimestamp,
		Labels:      map[string]string{},
		Annotations: map[string]string{},
	}
	for _, key := range []string{plumbline.EventLabel, pipelinesascode.State} {
		kept.Labels[key] = whole.Labels[key]
	}
	for _, key := range []string{
		pipelinesascode.MaxKeepRuns, pipelinesascode.OriginalPRName, pipelinesascode.RepoURL,
		plumbline.RunKeyAnnotation, plumbline.DefinitionAnnotation,
	} {
		if text, found := whole.Annotations[key]; found {
			kept.Annotations[key] = text[:min(len(text), maxText)]
		}
	}
	return kept
}
