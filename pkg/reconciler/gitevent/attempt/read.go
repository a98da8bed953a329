// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// Version is an event at the start of a reconcile.
type Version struct {
	Event     *v1alpha1.GitEvent
	started   time.Time // when it was requested
	confirmed time.Time // as cached.confirmed
}

// Read returns a listed event from the cache or from the API server, nil if it is settled or gone.
// It has no backoff of its own: it is tried whenever the event is woken.
func (s *State) Read(ctx context.Context, listed *v1alpha1.GitEvent) (*Version, error) {
	now := s.Clock.Now()
	event, known := s.Cache.get(listed)
	switch {
	case known.settled == listed.UID && known.settled != "":
		return nil, nil
	case event != nil:
		return &Version{event, now, known.confirmed}, nil
	}
	event, err := s.live(ctx, listed.Name)
	s.Timers.Note(listed.Name, backoff.Step{Name: StepRead}, err, s.Clock.Now())
	if event == nil || err != nil || !event.DeletionTimestamp.IsZero() {
		return nil, err
	}
	s.Cache.Put(event, now)
	if event.Settled() {
		return nil, nil
	}
	return &Version{event, now, now}, nil
}

// live reads an event from the API server; nil if it is gone.
func (s *State) live(ctx context.Context, name string) (*v1alpha1.GitEvent, error) {
	event, err := s.Events.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		s.Cache.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", name, err))
	}
	return event, nil
}

// Confirm is called before anything is sent to the Git service, created, changed or deleted because
// of the event. It asks the API server whether this is the newest version of the event, unless a
// read or a write of the status has confirmed that within the Fence. A process that was paused, or
// lost its lease, must not repeat what another one has taken over (H6).
//
// It refuses as soon as this process has released the event's lease, whatever was confirmed before.
// Another process may have created the PipelineRun meanwhile, and a user may have deleted it.
func (r *Record) Confirm(ctx context.Context) error {
	if r.state.Holds != nil && !r.state.Holds(r.event.Name) {
		r.state.Cache.Forget(r.event.Name)
		return &fault.Error{
			Class:   fault.Conflict,
			Reason:  ReasonPaused,
			Message: "this process does not lead any more; nothing is sent",
		}
	}
	if r.state.Clock.Since(r.confirmed) <= Fence {
		return nil
	}
	asked := r.state.Clock.Now()
	live, err := r.state.live(ctx, r.event.Name)
	if err != nil {
		return err
	}
	if live == nil || live.UID != r.event.UID || live.ResourceVersion != r.event.ResourceVersion {
		r.state.Cache.Forget(r.event.Name)
		return &fault.Error{
			Class:   fault.Conflict,
			Reason:  ReasonPaused,
			Message: "another process has written the event; reading again before anything is sent",
		}
	}
	r.confirmed = asked
	return nil
}

// Fence is the longest time between a confirmation and the action that depends on it. It is below
// the lease duration of config/ (15 s), after which another replica may act.
const Fence = 10 * time.Second

// ReasonPaused is the reason of the conflict of a process that has gone on with an event that
// another one has written.
const ReasonPaused = "Paused"
