// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// prunable is a run that is certain to be finished, reported and ours.
type prunable struct {
	*metav1.ObjectMeta
	at time.Time // its completion
}

// finished returns the listed runs that are certain to be finished, the earliest completion first.
// It may return an error with them. A run that it leaves out is neither counted nor deleted, so it
// may keep more runs and never fewer. It leaves out a run of another pipeline, whatever its
// labels are.
func (s *Step) finished(ctx context.Context, in input, listed []metav1.ObjectMeta) ([]prunable, error) {
	var all []prunable
	var faults []error
	reads, unsettled := &reads{exceeded: in.exceeded}, s.unsettled(in.event)
	listed = attempt.Rotated(len(listed) > maxFruitless, listed) // so that fruitless ones do not always come first
	for i := range listed {
		object := &listed[i]
		if unsettled[object.Labels[plumbline.EventLabel]] {
			continue
		}
		verdict, found := s.known.Get(object.UID)
		if !found {
			var err error
			verdict, err = s.learn(ctx, in, object, reads)
			faults = append(faults, err)
		}
		if verdict.ended && resources.SamePipeline(verdict.pipeline, in.run.Pipeline) {
			all = append(all, prunable{object, verdict.at})
		}
	}
	slices.SortFunc(all, func(x, y prunable) int {
		return cmp.Or(x.at.Compare(y.at), x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	if err := attempt.Merge(faults); err != nil {
		return all, err
	}
	if reads.left && reads.learnt >= maxFruitless { // otherwise the labels are false, and each attempt would read them
		return all, fault.Throttledf(fault.ReasonBusy, time.Second, "the other runs of the pipeline are next")
	}
	return all, nil
}

// unsettled returns the names of the other unsettled events of an event's Repository, as far as the
// cache knows. None of their runs counts as finished.
func (s *Step) unsettled(event *v1alpha1.GitEvent) map[string]bool {
	names := map[string]bool{}
	for _, other := range s.open(event) {
		names[other.Name] = other.Name != event.Name && !other.Settled()
	}
	return names
}

// reads counts what one attempt reads to learn that runs are finished.
type reads struct {
	all, learnt int
	// left is true if there was more to read.
	left     bool
	exceeded func() error
}

// may reports whether one more object may be read.
func (r *reads) may() bool {
	if r.all < maxReads && r.all-r.learnt < maxFruitless && r.exceeded() == nil {
		return true
	}
	r.left = true
	return false
}

// learn finds out about a run, and caches a verdict that does not change any more. A run that is
// not read does not count as finished. The event's own runs are finished when nothing is left to do
// but to settle, and cost no read.
func (s *Step) learn(ctx context.Context, in input, object *metav1.ObjectMeta, r *reads) (verdict, error) {
	if object.Labels[plumbline.EventLabel] == in.event.Name {
		return recorded(in.event, in.event, object), nil
	}
	if !r.may() {
		return verdict{}, nil
	}
	learnt, err := s.read(ctx, in, object)
	r.all++
	if learnt.final {
		s.known.Put(object.UID, learnt)
		r.learnt++
	}
	return learnt, err
}

// verdict is what is known of a run.
type verdict struct {
	// ended is true if the run is certain to be finished, reported and ours; at is its completion
	// then.
	ended bool
	at    time.Time
	// pipeline is the name in its event; if that is deleted, what the run's own name proves.
	pipeline string
	// final is true if that does not change any more.
	final bool
}

// read finds out about a run of another event. It is certainly finished if a settled event of the
// same Repository has recorded this object and its result, and has nothing left to report.
func (s *Step) read(ctx context.Context, in input, object *metav1.ObjectMeta) (verdict, error) {
	name := object.Labels[plumbline.EventLabel]
	if len(validation.IsDNS1123Subdomain(name)) != 0 { // no event ever had that name
		return verdict{final: true}, nil
	}
	event, err := s.Events.GitEvents(in.event.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case fault.Gone(err):
		return s.forgotten(ctx, in, object)
	case err != nil:
		return verdict{}, notPruned(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", name, err))
	case !event.Settled() || event.Status.Unreported:
		return verdict{}, nil
	}
	return recorded(event, in.event, object), nil
}

// recorded returns what an event has recorded of an object. An event of another Repository does not
// count; a Repository that was recreated for the same URL is the same.
func recorded(event, now *v1alpha1.GitEvent, object *metav1.ObjectMeta) verdict {
	of, is := event.Spec.Repository, now.Spec.Repository
	if of.Namespace != is.Namespace || of.Name != is.Name || !v1alpha1.SameURL(of.URL, is.URL) {
		return verdict{final: true}
	}
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		for _, earlier := range run.Attempts {
			if earlier.UID == object.UID {
				return verdict{ended: true, at: completion(earlier.CompletedAt), pipeline: run.Pipeline, final: true}
			}
		}
		if run.UID != object.UID || run.Result == nil || run.Result.Outcome == v1alpha1.OutcomeDeleted {
			continue
		}
		return verdict{ended: true, at: completion(run.Result.CompletedAt), pipeline: run.Pipeline, final: true}
	}
	return verdict{final: true}
}

// forgotten returns what is certain about a run whose event is deleted. All of these must be true:
//   - its name proves that it was planned
//   - it belongs to the same URL
//   - it is as old as any event that may be deleted, so a user cannot pass off a new run
//   - its label says that its result was accepted; without that label it is twice as old, because
//     the sweep has had as long to close the check of a run whose event was deleted
func (s *Step) forgotten(ctx context.Context, in input, object *metav1.ObjectMeta) (verdict, error) {
	of := object.Annotations[pipelinesascode.RepoURL]
	if !resources.Named(object, in.event.Namespace) || of != "" && !v1alpha1.SameURL(of, in.event.Spec.Repository.URL) {
		return verdict{final: true}, nil
	}
	least := in.retention
	if !resources.MarkedReported(object.Labels) {
		least *= 2
	}
	if in.now.Sub(object.CreationTimestamp.Time) < least {
		return verdict{}, nil
	}
	run, err := s.Tekton.PipelineRuns(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case fault.Gone(err):
		return verdict{}, nil
	case err != nil:
		return verdict{}, notPruned(fault.VerbRead,
			fmt.Errorf("reading pipelinerun %s/%s: %w", object.Namespace, object.Name, err))
	}
	if run.UID != object.UID || !run.IsDone() {
		return verdict{}, nil
	}
	return verdict{
		ended:    true,
		at:       completion(run.Status.CompletionTime),
		pipeline: object.Annotations[pipelinesascode.OriginalPRName],
		final:    true,
	}, nil
}

// completion returns a time to sort by. A run without a completion time comes last, as in PaC;
// Tekton sets one.
func completion(at *metav1.Time) time.Time {
	if at == nil {
		return time.Unix(1<<40, 0)
	}
	return at.Time
}
