// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// page is how many objects one list call returns.
	page = 500
	// maxTries is how often the same objects are tried because of a transient fault before they are
	// left to the next pass.
	maxTries = 3
	// maxLists is how often a list is. With the workqueue's backoff that is some minutes, as long
	// as the API server may need to come back.
	maxLists = 15
)

// phase is one walk over a kind of objects.
type phase struct {
	name     string
	list     metadata.ResourceInterface
	selector string
	// labels selects objects by their labels.
	labels string
	// batch is how many objects are handled together.
	batch int
	// handle does what is due for some objects that follow each other. What it returns is tried
	// again; what cannot be handled is skipped.
	handle func(ctx context.Context, objects []metav1.PartialObjectMetadata) error
	// due reports whether the phase has anything to do; nil is always.
	due func() bool
}

// position is where a pass is. It is lost with the process, which costs another pass.
type position struct {
	// phase is the index of the current one.
	phase int
	// token continues its list; empty is the beginning.
	token string
	// after is the last object that was handled in it: lists are in the order of namespaces and
	// names.
	after string
	// tries is how often what follows it has failed.
	tries int
	// unlisted is how often its list has failed since then.
	unlisted int
}

// goOn handles one page of the current phase, or as much of it as the turn has time for. The pass
// is over when there is no phase left.
func (r *Reconciler) goOn(ctx context.Context, over func() bool) error {
	phase := r.phases[r.at.phase]
	if phase.due != nil && !phase.due() {
		r.at = position{phase: r.at.phase + 1}
		return nil
	}
	list, err := phase.list.List(
		ctx,
		metav1.ListOptions{FieldSelector: phase.selector, LabelSelector: phase.labels, Limit: page, Continue: r.at.token},
	)
	if r.at.token != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		// The list went on for longer than the API server remembers. It may say how to go on with
		// newer objects; otherwise the list is begun again, and what was handled is passed over by
		// its name.
		if r.at.token = nextToken(err); r.at.token != "" {
			return nil
		}
	}
	if err != nil {
		return r.unlisted(ctx, phase, fault.FromKube(fault.VerbRead, fmt.Errorf("listing for %s: %w", phase.name, err)))
	}
	if err := r.handle(ctx, phase, list.Items, over); err != nil {
		return err
	}
	r.at.token = list.Continue
	if list.Continue == "" {
		r.at = position{phase: r.at.phase + 1}
	}
	return nil
}

// unlisted leaves a phase to the next pass when its objects may not be listed, which nobody would
// see otherwise: a fault for an operator is no error to the workqueue. So it does when they cannot
// be listed for long, because of one page that the API server cannot read, or one that it searches
// through for too long. Every other fault is returned.
func (r *Reconciler) unlisted(ctx context.Context, phase phase, f *fault.Error) error {
	if r.at.unlisted++; f.Class != fault.Operator && r.at.unlisted < maxLists {
		return f
	}
	logging.FromContext(ctx).Errorw("Not swept", "phase", phase.name, "error", f)
	r.metrics.skipped(ctx, phase.name)
	r.at, r.found.partial = position{phase: r.at.phase + 1}, true
	return nil
}

func nextToken(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// handle takes the objects in batches and notes how far it came. Each turn takes one at least.
func (r *Reconciler) handle(
	ctx context.Context,
	phase phase,
	objects []metav1.PartialObjectMetadata,
	over func() bool,
) error {
	for len(objects) > 0 && r.at.after != "" && keyOf(&objects[0]) <= r.at.after {
		objects = objects[1:]
	}
	for len(objects) > 0 {
		if err := ctx.Err(); err != nil {
			return fault.FromKube(fault.VerbRead, err)
		}
		n := min(phase.batch, len(objects))
		if err := r.guarded(ctx, phase, objects[:n]); err != nil {
			r.at.tries++
			return err
		}
		r.at.after, r.at.tries, r.at.unlisted = keyOf(&objects[n-1]), 0, 0
		if objects = objects[n:]; len(objects) > 0 && over() {
			return goesOn()
		}
	}
	return nil
}

func keyOf(object *metav1.PartialObjectMetadata) string { return object.Namespace + "/" + object.Name }

// guarded skips objects whose handling panics.
func (r *Reconciler) guarded(ctx context.Context, phase phase, objects []metav1.PartialObjectMetadata) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			logging.FromContext(ctx).
				Errorw("Panic while sweeping", "phase", phase.name, "first", objects[0].Name, "objects", len(objects),
					"panic", cause, "stack", string(debug.Stack()))
			r.metrics.skipped(ctx, phase.name)
		}
	}()
	return phase.handle(ctx, objects)
}

// unless decides about an object that could not be handled. A transient fault is returned: it is
// tried again, but not for ever. Everything else is logged and counted, and the next pass meets it
// again: it stops none of the others.
func (r *Reconciler) unless(ctx context.Context, object string, err error) error {
	f := fault.Of(err)
	if f == nil {
		return nil
	}
	if f.Class == fault.Conflict { // somebody has just written it: what is due then, the next pass sees
		return nil
	}
	transient := f.Class == fault.Transient || f.Class == fault.Throttled
	if transient && r.at.tries < maxTries-1 { // also when the reconcile's time is over: this object may have used it up
		return err
	}
	logging.FromContext(ctx).Errorw("Not swept", "phase", r.phases[r.at.phase].name, "object", object, "error", err)
	r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	return nil
}
