// SPDX-License-Identifier: Apache-2.0

// Package prune deletes ended PipelineRuns beyond the number that is kept of their pipeline. An
// event does that when nothing else is left of it but to settle: it tells of the last end. Only a
// run is deleted that an event has recorded, whose end the Git service has accepted. See
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
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
)

const (
	// ReasonNotPruned is that of the wait of an event that could not delete what is not kept.
	ReasonNotPruned = "NotPruned"
	// GiveUp is how long an event stays open because of that. The pipeline's next event deletes
	// what is left.
	GiveUp = time.Hour
	// page is how many PipelineRuns are listed at once, without their specs: whoever makes one may
	// give it a mebibyte of labels and annotations. maxListed bounds those of one pipeline that one
	// attempt looks at, and maxText what is kept of each of their annotations. What it does not
	// look at makes it delete less, never more.
	page      = 50
	maxListed = 10_000
	maxText   = 1 << 10
	// maxReads is how many events and runs one attempt reads to learn that runs are over. The next
	// attempt goes on.
	maxReads = 300
	// maxVain is how many of these may teach nothing that stays true, because the event that a run
	// names is open or gone. Each event would read them again; and anybody who may label
	// PipelineRuns can have any number of them, at the cost of everybody's calls.
	maxVain = 50
	// maxKnown bounds the verdicts that are remembered, some 250 bytes each. What is evicted is read
	// again.
	maxKnown = 50_000
)

// Step takes an event whose runs are over and reported, and deletes runs of the same pipelines.
type Step struct {
	// Tekton deletes runs, and reads those whose event is forgotten.
	Tekton tektonv1.PipelineRunsGetter
	// Runs lists them, without their specs.
	Runs metadata.Getter
	// Events are read live.
	Events plumblineclient.GitEventsGetter
	// Open are the open events of a Repository, from a cache.
	Open func(namespace, name string) []*v1alpha1.GitEvent

	// known are the final verdicts of this process, so that each run is read once and not each time
	// that its pipeline is pruned.
	known *recent.Map[types.UID, verdict]
}

// New returns a step that knows no run yet.
func New(c clients.Cluster) *Step {
	known := &recent.Map[types.UID, verdict]{Max: maxKnown}
	return &Step{Tekton: c.Tekton, Runs: c.Tekton.Metadata, Events: c.Plumbline, Open: c.Open.Of, known: known}
}

// Do deletes what is not kept of the pipelines whose runs the event tells of. Whatever refuses a
// delete, it is tried again with the workqueue's backoff, until GiveUp or until a later event can
// do it: what is refused for a Repository must not keep all of its events open, which may be no
// more than a thousand. It is never reported.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	err := a.Waits.Step(v1alpha1.StepPrune, func() error {
		return a.Waits.Try(backoff.Step{Name: v1alpha1.StepPrune}, func() error { return s.prune(ctx, a) })
	})
	wait := a.Waits.Of(v1alpha1.StepPrune)
	switch {
	case err == nil || wait == nil:
		return err
	case wait.Reason == ReasonNotPruned && s.others(a):
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

// others reports whether each pipeline that the event prunes has a run of a later open event that
// will prune it, too. Later ones only, so that no two events leave it to each other: the last one
// does it.
func (s *Step) others(a *attempt.Attempt) bool {
	open := s.Open(a.Event.Spec.Repository.Namespace, a.Event.Spec.Repository.Name)
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if _, limited := a.Config.Keep.Of(run.MaxKeepRuns); run.UID == "" || !limited {
			continue
		}
		if !slices.ContainsFunc(open, func(later *v1alpha1.GitEvent) bool {
			return later.Spec.Repository.UID == a.Event.Spec.Repository.UID && isLater(later, a.Event) && prunes(a, later, run)
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
// are kept.
func prunes(a *attempt.Attempt, event *v1alpha1.GitEvent, as *v1alpha1.Run) bool {
	return !event.Settled() && slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
		_, limited := a.Config.Keep.Of(run.MaxKeepRuns)
		return limited && run.UID != "" && run.Namespace == as.Namespace && resources.SamePipeline(run.Pipeline, as.Pipeline)
	})
}

func (s *Step) prune(ctx context.Context, a *attempt.Attempt) error {
	var faults []error
	over := a.Turn(attempt.LongTurn)
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		keep, limited := a.Config.Keep.Of(run.MaxKeepRuns)
		if run.UID == "" || !limited || keep >= maxListed { // no more are looked at, so all are kept
			continue
		}
		listed, err := s.list(ctx, a, run)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if len(listed) <= keep || unnoted(run, listed) {
			continue
		}
		all, err := s.certain(ctx, a, run.Pipeline, listed, over)
		faults = append(faults, err)
		for _, old := range attempt.InTurn(a.Waits.Of(v1alpha1.StepPrune) != nil, all[:max(0, len(all)-keep)]) {
			err := over()
			if err == nil {
				err = a.Record.Confirm(ctx)
			}
			if err != nil {
				return attempt.First(append(faults, err))
			}
			faults = append(faults, s.remove(ctx, old))
		}
	}
	return attempt.First(faults)
}

// unnoted reports whether a version before has planned the run, which notes nothing of what its
// author wants. That is not the default.
func unnoted(run *v1alpha1.Run, listed []metav1.ObjectMeta) bool {
	return run.MaxKeepRuns == nil && slices.ContainsFunc(listed, func(object metav1.ObjectMeta) bool {
		_, written := object.Annotations[pipelinesascode.MaxKeepRuns]
		return written && object.UID == run.UID
	})
}

// remove deletes one run, if it is the object that was looked at. With it go its TaskRuns, its pods
// and its git-auth secret.
func (s *Step) remove(ctx context.Context, old ended) error {
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

// notPruned keeps the words of a refusal and makes the retry the workqueue's, whatever refused it
// (docs/adr/0003).
func notPruned(verb fault.Verb, err error) error {
	return fault.Transientf(ReasonNotPruned, "%s", fault.FromKube(verb, err).Message)
}

// list returns the runs that say that they are of a run's pipeline and are not being deleted.
// Whether they are over is in their events: the label that says so is patched onto them, which may
// be refused.
func (s *Step) list(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) ([]metav1.ObjectMeta, error) {
	repository := a.Event.Spec.Repository.Name
	selector := resources.PipelineRuns(a.Event.Namespace, repository, run.Pipeline)
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

// trimmed is what is needed of a listed run.
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
		pipelinesascode.MaxKeepRuns, pipelinesascode.OriginalPRName, pipelinesascode.RepoURL, plumbline.RunKeyAnnotation, plumbline.DefinitionAnnotation,
	} {
		if text, found := whole.Annotations[key]; found {
			kept.Annotations[key] = text[:min(len(text), maxText)]
		}
	}
	return kept
}
