// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// sight is what is known of a name: the verdict of its record or tombstone, or that there is none,
// or an error.
type sight struct {
	verdict verdict
	known   bool
	err     error
}

// before is what is known of a name before anything is created. That a record is there, the create
// of another one tells. But
//   - the record of an event that is not recent is looked for, and its tombstone after it: see look;
//   - a payload of its own is written before the event. That of a settled event, whose payload is deleted already, would be left
//     behind, and nothing would delete it.
func (r *Recorder) before(ctx context.Context, name string, p *parcel) sight {
	if p.whole() && r.recent(p.spec) {
		return sight{}
	}
	return r.look(ctx, name, p.spec)
}

// look reads the record and, unless the event is recent, the tombstone. The sweep writes the
// tombstone before it deletes the record. So when there is no record, the tombstone is read after
// that was seen: an earlier read may have been too early.
func (r *Recorder) look(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) sight {
	seen := r.recorded(ctx, name, spec)
	if seen.known || seen.err != nil || r.recent(spec) {
		return seen
	}
	return r.remembered(ctx, name, spec)
}

// recent reports whether the signed body of a delivery says that its event happened a moment ago,
// so that no record of it is deleted yet and there is no tombstone: the sweep lets each stub stay
// for half an hour (docs/adr/0028). Nothing counts as recent unless the API server has shown lately
// that its clock and ours agree.
func (r *Recorder) recent(spec *v1alpha1.GitEventSpec) bool {
	now := r.Clock.Now()
	return spec.Body != nil && r.knowsTime(now) && now.Sub(spec.Body.At.Time).Abs() < recentTime
}

// knowsTime reports whether our clock has gone on evenly since it was compared. The two ways to
// subtract differ if it was set: one is of what it says, the other of the time that has passed. The
// API server's may be set as well, so that it is compared now and then.
func (r *Recorder) knowsTime(now time.Time) bool {
	at := r.clocksAgree.Load()
	if at == nil {
		return false
	}
	said, passed := now.Round(0).Sub(at.Round(0)), now.Sub(*at)
	return said >= 0 && said < clockAge && (said-passed).Abs() < clockTolerance
}

// compareClocks takes the time of the API server from what it has created at our time.
func (r *Recorder) compareClocks(created metav1.Time, at time.Time) {
	if created.Sub(at).Abs() >= clockTolerance {
		r.clocksAgree.Store(nil)
		return
	}
	r.clocksAgree.Store(&at)
}

// recorded reads the GitEvent.
func (r *Recorder) recorded(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) sight {
	ctx, cancel := r.Wait.call(ctx)
	defer cancel()
	existing, err := r.Events.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return sight{}
	}
	if err != nil {
		return sight{err: fmt.Errorf("reading GitEvent %s: %w", name, fault.FromKube(fault.VerbRead, err))}
	}
	found := judge(existing, spec)
	if found == foreign {
		return sight{err: foreignEvent(existing.Namespace, existing.Name)}
	}
	if there, err := r.keep(ctx, existing); err != nil || !there {
		return sight{err: err}
	}
	return sight{verdict: found, known: true}
}

// remembered looks for what is left of an event that was deleted while its delivery may be sent
// again. That there is nothing must be certain: otherwise the delivery could be processed twice.
func (r *Recorder) remembered(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) sight {
	ctx, cancel := r.Wait.call(ctx)
	defer cancel()
	for range maxNameRaces {
		seen, changed := r.buried(ctx, name, spec)
		if !changed {
			return seen
		}
	}
	return sight{err: fault.Transientf("NameRace", "TombstonePage %s changes all the time", tombstone.PageOf(name))}
}

// buried is what the tombstone of an event says, whose end it moves. Changed is that somebody else
// has written the page meanwhile.
func (r *Recorder) buried(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) (seen sight, changed bool) {
	page, err := r.Tombstones.Get(ctx, tombstone.PageOf(name), metav1.GetOptions{})
	if fault.Gone(err) {
		return sight{}, false
	}
	if err != nil {
		return sight{
			err: fmt.Errorf("reading TombstonePage %s: %w", tombstone.PageOf(name), fault.FromKube(fault.VerbRead, err)),
		}, false
	}
	entry, buried := tombstone.Find(page, name, r.Clock.Now())
	switch {
	case !buried:
		return sight{}, false
	case !entry.Records(spec.Payload.Digest) && !entry.Records(spec.Happening()):
		return sight{err: foreignEvent(r.Namespace, name)}, false
	}
	if changed, err := r.keepBuried(ctx, page, entry); changed || err != nil {
		return sight{err: err}, changed
	}
	if entry.Again {
		return sight{verdict: processAgain, known: true}, false
	}
	return sight{verdict: alreadyRecorded, known: true}, false
}

func foreignEvent(namespace, name string) error {
	return fault.Operatorf("ForeignEvent", "GitEvent %s/%s records another delivery", namespace, name)
}
