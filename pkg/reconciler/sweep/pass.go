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
	// maxTries is how often the same objects are tried after a transient fault. Then the next pass
	// tries them.
	maxTries = 3
	// maxLists is the same for a list. With the workqueue's backoff that takes some minutes, which
	// an API server may need to recover.
	maxLists = 15
)

// phase is one walk over the objects of a kind.
type phase struct {
	name     string
	list     metadata.ResourceInterface
	selector string
	// labels selects objects by their labels.
	labels string
	// batch is how many objects are handled together.
	batch int
	// handle does what is due for some consecutive objects. If it returns an error they are tried
	// again; what cannot be handled is skipped.
	handle func(ctx context.Context, objects []metav1.PartialObjectMetadata) error
	// due reports whether the phase has anything to do; nil is always.
	due func() bool
}

// position is where a pass is. It is lost with the process, which costs another pass.
type position struct {
	// phase is the index of the current phase.
	phase int
	// token continues its list; "" is the beginning.
	token string
	// after is the last object that was handled. Lists are in the order of namespaces and names.
	after string
	// tries counts the failures of what follows it.
	tries int
	// unlisted counts the failures of its list since then.
	unlisted int
}

// nextPage handles one page of the current phase, or as much of it as there is time for. The pass
// has ended when there is no phase left.
func (r *Reconciler) nextPage(ctx context.Context, over func() bool) error {
	phase := r.phases[r.at.phase]
	if phase.due != nil && !phase.due() {
		r.at = position{phase: r.at.phase + 1}
		return nil
	}
	list, err := phase.list.List(ctx,
		metav1.ListOptions{FieldSelector: phase.selector, LabelSelector: phase.labels, Limit: page, Continue: r.at.token})
	if r.at.token != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		// The API server does not remember the list any more. It may return a token for newer
		// objects. Otherwise the list starts over, and what was handled is skipped by its name.
		if r.at.token = nextToken(err); r.at.token != "" {
			return nil
		}
	}
	if err != nil {
		return r.skipUnlisted(ctx, phase, fault.FromKube(fault.VerbRead, fmt.Errorf("listing for %s: %w", phase.name, err)))
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

// skipUnlisted skips a phase until the next pass if listing its objects is forbidden, or has failed
// maxLists times (the API server may be unable to read one page). It logs the skip, because the
// workqueue does not log a fault for an operator. It returns every other fault.
func (r *Reconciler) skipUnlisted(ctx context.Context, phase phase, f *fault.Error) error {
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

// handle takes the objects in batches and records how far it came. Each reconcile takes at least
// one batch.
func (r *Reconciler) handle(
	ctx context.Context, phase phase, objects []metav1.PartialObjectMetadata, over func() bool,
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
			return continueSoon()
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

// skipUnlessTransient decides about an object that could not be handled. It returns a transient
// fault, which is retried a few times. It logs and counts everything else, and the next pass tries
// again. No object stops the others.
func (r *Reconciler) skipUnlessTransient(ctx context.Context, object string, err error) error {
	f := fault.Of(err)
	if f == nil {
		return nil
	}
	if f.Class == fault.Conflict { // it was just written: the next pass sees what is due then
		return nil
	}
	transient := f.Class == fault.Transient || f.Class == fault.Throttled
	if transient && r.at.tries < maxTries-1 { // also after the deadline of the reconcile: this object may have caused that
		return err
	}
	logging.FromContext(ctx).Errorw("Not swept", "phase", r.phases[r.at.phase].name, "object", object, "error", err)
	r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	return nil
}
