// SPDX-License-Identifier: Apache-2.0

// Package reply writes the comments on a pull request that several events share: the answer to its
// commands, and the errors in its files of .tekton. Only the event that has recorded that it writes
// a comment may write it. See docs/adr/0039.
package reply

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// replyLimit is how long a reply is tried, for one reason or several. The GitEvent has the
	// answer, too, and an event must not stay unsettled for its reply.
	replyLimit = time.Hour
	// writingLimit is how long other events wait for one that has recorded that it writes the
	// comment. No event that is still reconciled takes that long. An event that is not, for example
	// because it panics, must not keep the others from being answered.
	writingLimit = 2 * time.Hour
	// waitLimit is how soon an event checks again whether another one still writes the comment;
	// yieldLimit is the same for the event that goes second.
	waitLimit, yieldLimit = 2 * time.Second, 5 * time.Second
)

// Step writes the comments that an event shares with others.
type Step struct {
	// Events are read live: the others of the pull request.
	Events history.Lister
	// Identity is this process's name. No other process ever has it.
	Identity string
	// Late is how long after it was sent a post of a process may take effect.
	Late time.Duration
	// Limited returns after how long a limited command may be answered, 0 if it may be answered
	// now. Limited are those of untrusted users, and /why: few of them are answered in a minute.
	Limited func(event *v1alpha1.GitEvent, now time.Time) time.Duration
	// Clean caches the events that have nothing to say in a comment: neither errors nor failures,
	// and no fixed ones. A key is the comment's mark and the event's name.
	Clean *recent.Map[string, bool]
}

// Do writes the comment that answers the commands of the event's pull request, if the Git service
// has not accepted what it says about this event. It fails no run and no check. A permanent
// problem, or one that an operator must fix, is reported once, and the reply is given up.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Reply == nil || !a.Planned() {
		return nil
	}
	return s.write(ctx, a, answers())
}

// write writes one of the comments, unless it is up to date or given up.
func (s *Step) write(ctx context.Context, a *attempt.Attempt, c *comment) error {
	reply := c.of(a.Event)
	if reply.GivenUp != "" {
		return nil
	}
	digest := c.digest(a.Event)
	if reply.Accepted == digest && reply.Begun == nil {
		return nil
	}
	return a.Waits.WithBackoff(backoff.Step{Name: c.step, Version: digest}, func() error {
		err := s.writeAlone(ctx, a, c)
		if err == nil {
			reply.Accepted, reply.FailingSince = digest, nil
			reply.Release()
			return nil
		}
		f := fault.Of(err)
		*reply = afterFailure(*reply, f, a.Clock.Now(), s.Late)
		if !errors.As(err, new(*refusal)) {
			return err
		}
		reply.GivenUp = f.Reason
		reply.Release()
		a.Waits.WarningEvent(f.Reason, c.what+" is not written: "+f.Advice())
		return nil
	})
}

// afterFailure returns the record of a comment after an attempt has failed. Other events may write
// the comment then, unless what was sent may still take effect.
func afterFailure(
	reply v1alpha1.CommentState, f *fault.Error, now time.Time, late time.Duration,
) v1alpha1.CommentState {
	if f.Reason != fault.ReasonBusy && reply.FailingSince == nil {
		reply.FailingSince = at(now.Truncate(time.Second))
	}
	switch {
	case f.Class == fault.Conflict, f.Reason == fault.ReasonBusy: // nothing was sent, or another process knows better
		if reply.LateUntil == nil {
			reply.Holder = ""
		}
	case f.Unknown:
		reply.LateUntil = at(now.Add(late))
	default:
		reply.Release()
	}
	return reply
}

func at(t time.Time) *metav1.Time {
	when := metav1.NewTime(t)
	return &when
}

// refusal is the error of a comment that is not retried: for example, a permission is missing, or
// the conversation is locked.
type refusal struct{ error }

// Unwrap returns the Git service's error.
func (r *refusal) Unwrap() error { return r.error }

// refused turns an error that will not change by itself into a refusal. Refused credentials are no
// such error, because a user may replace them. A conversation that is too large to be read is
// one: untrusted users may write into it, and it must not be read again and again.
func refused(err error) error {
	f := fault.Of(err)
	if errors.Is(err, provider.ErrTooLarge) {
		return &refusal{err}
	}
	if f.Class == fault.Transient || f.Class == fault.Throttled || f.Class == fault.Conflict ||
		f.Reason == fault.ReasonCredentialsRefused {
		return err
	}
	return &refusal{err}
}

// writeAlone writes the comment once no other event may write it. It records that it is about to
// before it looks for other writers, so of two events that begin at once at least one sees the
// other. So when it looks for the comment, every earlier writer has written it. A write that was
// lost is not repeated before it is known to be lost. The content of the comment is decided last:
// it has what all earlier writers have said.
func (s *Step) writeAlone(ctx context.Context, a *attempt.Attempt, c *comment) error {
	reply := c.of(a.Event)
	if writes, err := s.waits(ctx, a, c); !writes || err != nil {
		return err
	}
	if err := s.begin(ctx, a, reply); err != nil {
		return err
	}
	wait, since := a.Waits.Of(c.step), reply.FailingSince
	if wait != nil && since != nil && a.Clock.Since(since.Time) >= replyLimit {
		return &refusal{fault.Transientf(wait.Reason, "%s", wait.Message)}
	}
	events, err := s.answered(ctx, a, c)
	if err != nil {
		return err
	}
	if !c.has(events, a.Event) { // a user who writes many commands gets no answer to the older ones
		return nil
	}
	if err := s.yield(ctx, a, c, events); err != nil {
		return err
	}
	client, err := a.Git.Connect(ctx)
	if err != nil {
		return err
	}
	if err := s.hold(ctx, a, reply); err != nil {
		return err
	}
	fenced := provider.Fenced(ctx, func() error { return a.Record.Confirm(ctx) })
	return a.Traced(fenced, c.step, func(ctx context.Context) error {
		return c.put(ctx, client, a.Event, events)
	})
}

// waits delays the answer to an untrusted user's command, and to /why. While it waits, other events
// may write the comment. It reports whether the comment is about the event at all.
func (s *Step) waits(ctx context.Context, a *attempt.Attempt, c *comment) (writes bool, err error) {
	if !c.limited(a.Event) || c.of(a.Event).Begun != nil {
		return true, nil
	}
	events, err := s.answered(ctx, a, c)
	if err != nil || !c.has(events, a.Event) {
		return false, err
	}
	if wait := s.Limited(a.Event, a.Clock.Now()); wait > 0 {
		return false, fault.Throttledf(fault.ReasonBusy, wait, "few such commands are answered in a minute")
	}
	return true, nil
}

// answered returns the event, then all other events of its pull request that may be writing the
// comment, then the newest others that it is about. There may be thousands of older ones.
func (s *Step) answered(ctx context.Context, a *attempt.Attempt, c *comment) ([]*v1alpha1.GitEvent, error) {
	var writing, others []*v1alpha1.GitEvent
	err := history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if other.Name == a.Event.Name || !c.counts(other) {
			return true
		}
		kept := history.Trimmed(other)
		if c.writes(kept, a.Clock.Now()) {
			writing = append(writing, kept)
			return true
		}
		others = c.newest(append(others, kept))
		return true
	})
	return slices.Concat([]*v1alpha1.GitEvent{a.Event}, writing, others), err
}

// writes reports whether an event may be writing the comment.
func (c *comment) writes(event *v1alpha1.GitEvent, now time.Time) bool {
	reply := c.of(event)
	return reply != nil && reply.Begun != nil && now.Sub(reply.Begun.Time) <= writingLimit
}

// begin records that the event is about to write the comment. Then it waits until nothing can take
// effect any more that this process, or one before it, may have sent.
func (s *Step) begin(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.CommentState) error {
	next, left := begun(*reply, s.Identity, a.Clock.Now(), s.Late)
	*reply = next
	if reply.Holder == "" { // another event wrote when this one began, and nothing was sent
		return nil
	}
	if err := a.Record.Write(ctx); err != nil {
		return err
	}
	if left > 0 {
		return fault.Throttledf(fault.ReasonBusy, left, "what was sent before may still take effect")
	}
	return nil
}

// begun returns the record of a reply that this process is about to write, and how long it must
// wait. A recorded holder may have sent something: the outcome of its attempt may have been lost.
// The holder stays empty if an earlier attempt has begun and sent nothing.
func begun(
	reply v1alpha1.CommentState, identity string, now time.Time, late time.Duration,
) (next v1alpha1.CommentState, left time.Duration) {
	switch {
	case reply.Begun == nil:
		reply.Begun = at(now.Truncate(time.Second))
	case reply.Holder == "":
		return reply, 0
	case reply.Holder != identity || reply.LateUntil == nil:
		reply.LateUntil = at(now.Truncate(time.Second).Add(late))
	}
	if reply.LateUntil != nil {
		left = reply.LateUntil.Sub(now)
	}
	if left <= 0 {
		reply.LateUntil = nil
	}
	reply.Holder = identity
	return reply, max(0, left)
}

// hold records, if the status does not have it yet, that this process is about to send something.
func (s *Step) hold(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.CommentState) error {
	reply.Holder = s.Identity
	if err := a.Record.Write(ctx); err != nil {
		return err
	}
	return a.Record.Confirm(ctx)
}

// yield returns nil if no other event of the pull request may be writing the comment. If an older
// one may be, this event releases the comment.
func (s *Step) yield(ctx context.Context, a *attempt.Attempt, c *comment, events []*v1alpha1.GitEvent) error {
	waits, second := c.contested(events, a.Clock.Now())
	switch {
	case second:
		c.of(a.Event).Release()
		if err := a.Record.Write(ctx); err != nil {
			return err
		}
		return fault.Throttledf(fault.ReasonBusy, yieldLimit, "another event of the pull request writes the comment first")
	case waits:
		return fault.Throttledf(fault.ReasonBusy, waitLimit, "another event of the pull request is writing the comment")
	}
	return nil
}
