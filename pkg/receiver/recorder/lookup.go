// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// lookup is the result of looking a name up: the verdict on its record or tombstone if that exists,
// or an error.
type lookup struct {
	verdict verdict
	exists  bool
	err     error
}

// lookUpFirst looks a name up before anything is created, where the create alone is not enough:
//   - the event is not recent, so its record may have been deleted: see lookUp;
//   - the body needs payloads, which are written before the event. If the event exists and is
//     settled, nothing would delete them.
//
// Otherwise an existing record shows when the create fails.
func (r *Recorder) lookUpFirst(ctx context.Context, name string, d *draft) lookup {
	if d.fitsInEvent() && r.isRecent(d.spec) {
		return lookup{}
	}
	return r.lookUp(ctx, name, d.spec)
}

// lookUp reads the record and, unless the event is recent, the tombstone. The sweep writes the
// tombstone before it deletes the record. So the tombstone is read after the record was found
// missing: an earlier read might have been too early.
func (r *Recorder) lookUp(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) lookup {
	seen := r.lookUpEvent(ctx, name, spec)
	if seen.exists || seen.err != nil || r.isRecent(spec) {
		return seen
	}
	return r.lookUpTombstone(ctx, name, spec)
}

func (r *Recorder) lookUpEvent(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) lookup {
	ctx, cancel := r.Timeout.Context(ctx)
	defer cancel()
	existing, err := r.Events.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return lookup{}
	}
	if err != nil {
		return lookup{err: fmt.Errorf("reading GitEvent %s: %w", name, fault.FromKube(fault.VerbRead, err))}
	}
	found := compare(existing, spec)
	if found == foreign {
		return lookup{err: foreignEvent(existing.Namespace, existing.Name)}
	}
	if exists, err := r.noteInEvent(ctx, existing); err != nil || !exists {
		return lookup{err: err}
	}
	return lookup{verdict: found, exists: true}
}

// lookUpTombstone looks for the tombstone of an event that was deleted while its delivery may still
// be sent again. It must be certain that there is none: otherwise the delivery could be processed
// twice.
func (r *Recorder) lookUpTombstone(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) lookup {
	ctx, cancel := r.Timeout.Context(ctx)
	defer cancel()
	for range maxNameRaces {
		seen, changed := r.readTombstone(ctx, name, spec)
		if !changed {
			return seen
		}
	}
	return lookup{err: fault.Transientf(reasonNameRace, "TombstonePage %s changes all the time", tombstone.PageOf(name))}
}

// readTombstone reads the tombstone of an event and extends it. Changed reports that another
// process has written the page in between.
func (r *Recorder) readTombstone(
	ctx context.Context, name string, spec *v1alpha1.GitEventSpec,
) (seen lookup, changed bool) {
	page, err := r.Tombstones.Get(ctx, tombstone.PageOf(name), metav1.GetOptions{})
	if fault.Gone(err) {
		return lookup{}, false
	}
	if err != nil {
		return lookup{
			err: fmt.Errorf("reading TombstonePage %s: %w", tombstone.PageOf(name), fault.FromKube(fault.VerbRead, err)),
		}, false
	}
	entry, found := tombstone.Find(page, name, r.Clock.Now())
	switch {
	case !found:
		return lookup{}, false
	case !entry.Records(spec.Payload.Digest) && !entry.Records(spec.Happening()):
		return lookup{err: foreignEvent(r.Namespace, name)}, false
	}
	if changed, err := r.noteInTombstone(ctx, page, entry); changed || err != nil {
		return lookup{err: err}, changed
	}
	if entry.Again {
		return lookup{verdict: processAgain, exists: true}, false
	}
	return lookup{verdict: alreadyRecorded, exists: true}, false
}

func foreignEvent(namespace, name string) error {
	return fault.Operatorf(ReasonForeignEvent, "GitEvent %s/%s records another delivery", namespace, name)
}
