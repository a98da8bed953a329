// SPDX-License-Identifier: Apache-2.0

// Package reply answers the commands of a pull request, in one comment that all of them share. One
// event at a time writes it: the one that has it on record. See docs/adr/0039.
package reply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// replyLimit is how long a reply is tried, for one reason or several. What it says is in the
	// GitEvent, and an event must not stay open for it.
	replyLimit = time.Hour
	// beganLimit is how long ago an event may have begun to write the comment for the others to
	// wait for it. It is more than any event takes that goes on: one that does not, because it
	// panics say, must not keep the others from being answered.
	beganLimit = 2 * time.Hour
	// inTurn is when an event looks again whether another one writes the comment; yielded is the
	// same for the one that goes second.
	inTurn, yielded = 2 * time.Second, 5 * time.Second
)

// Step writes the comment of a command's event.
type Step struct {
	// Events are read live: the other commands of the pull request.
	Events history.Lister
	// Identity is this process's name among all that ever ran.
	Identity string
	// Late is how long what a process has sent may take to take effect.
	Late time.Duration
	// Untrusted returns after how long an untrusted user's command may be answered, 0 if it may be
	// now.
	Untrusted func(event *v1alpha1.GitEvent, now time.Time) time.Duration
}

// Do writes the comment that answers the commands of the event's pull request, if what it says of
// this one is not accepted. It fails no run and no check: what somebody would have to mend, and
// what lasts, is told once and given up.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	reply := a.Event.Status.Reply
	if reply == nil || !a.Planned() || reply.GivenUp != "" {
		return nil
	}
	digest := status.ReplyDigest(a.Event)
	if reply.Accepted == digest && reply.Begun == nil {
		return nil
	}
	return a.Waits.Try(backoff.Step{Name: v1alpha1.StepReply, Version: digest}, func() error {
		if err := s.reply(ctx, a, reply); err != nil {
			return s.failed(a, reply, err)
		}
		reply.Accepted, reply.FailingSince = digest, nil
		reply.Release()
		return nil
	})
}

// failed lets others write the comment, unless what was sent may still take effect, and gives up
// what the Git service refuses. It returns what is to be waited for.
func (s *Step) failed(a *attempt.Attempt, reply *v1alpha1.Reply, err error) error {
	f := fault.Of(err)
	if f.Reason != fault.ReasonBusy && reply.FailingSince == nil {
		now := metav1.NewTime(a.Clock.Now().Truncate(time.Second))
		reply.FailingSince = &now
	}
	switch {
	case f.Class == fault.Conflict, f.Reason == fault.ReasonBusy: // nothing was sent, or another process knows better
		if reply.LateUntil == nil {
			reply.Holder = ""
		}
	case f.Unknown:
		until := metav1.NewTime(a.Clock.Now().Add(s.Late))
		reply.LateUntil = &until
	default:
		reply.Release()
	}
	var refused *refusal
	if errors.As(err, &refused) {
		giveUp(a, reply, f)
		return nil
	}
	return err
}

// giveUp tells the Repository that nobody is told, and why.
func giveUp(a *attempt.Attempt, reply *v1alpha1.Reply, f *fault.Error) {
	reply.GivenUp = f.Reason
	reply.Release()
	a.Waits.Tell(f.Reason, "the reply to a command is not written: "+f.Advice())
}

// refusal is the error of a reply that is not tried again: a permission is missing, say, or the
// conversation is locked.
type refusal struct{ error }

// Unwrap returns the Git service's error.
func (r *refusal) Unwrap() error { return r.error }

// refused makes a refusal of what will not change by itself. Credentials may be replaced. A
// conversation that is too large to be read stays so, and anybody may write into it: it is not read
// again and again.
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

// reply writes the comment once this event alone may. That it is about to is on record before it
// looks who else is: of two that begin at once at least one sees the other. So the comment has been
// written by whoever wrote it before when this one looks for it, and a write that was lost is not
// repeated before it is known to be lost. What the comment says is decided after that as well: it
// has everything that those before have said.
func (s *Step) reply(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.Reply) error {
	if told, err := s.waits(ctx, a, reply); !told || err != nil {
		return err
	}
	if err := s.begin(ctx, a, reply); err != nil {
		return err
	}
	if wait := a.Waits.Of(
		v1alpha1.StepReply,
	); wait != nil && reply.FailingSince != nil &&
		a.Clock.Since(reply.FailingSince.Time) >= replyLimit {
		return &refusal{fault.Transientf(wait.Reason, "%s", wait.Message)}
	}
	events, err := s.said(ctx, a)
	if err != nil {
		return err
	}
	if !status.InReply(events, a.Event) { // whoever writes many commands must not have each of them wait for its turn
		return nil
	}
	if err := s.alone(ctx, a, events); err != nil {
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
	return a.Traced(fenced, v1alpha1.StepReply, func(ctx context.Context) error {
		return put(ctx, client, a.Event.Spec.PullRequest.Number, events)
	})
}

// put writes the comment.
func put(ctx context.Context, client *provider.Client, pull int64, events []*v1alpha1.GitEvent) error {
	if err := client.PutReply(ctx, pull, status.ReplyMark, status.Replies(events)); err != nil {
		return refused(fmt.Errorf("replying to a command: %w", err))
	}
	return nil
}

// waits is done before the command of an untrusted user is answered: while it has to wait it keeps
// nobody else from writing the comment. It reports whether the comment tells of the command.
func (s *Step) waits(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.Reply) (told bool, err error) {
	if !reply.Untrusted || reply.Begun != nil {
		return true, nil
	}
	events, err := s.said(ctx, a)
	if err != nil || !status.InReply(events, a.Event) {
		return false, err
	}
	if wait := s.Untrusted(a.Event, a.Clock.Now()); wait > 0 {
		return false, fault.Throttledf(fault.ReasonBusy, wait,
			"few commands of untrusted users are answered in a minute")
	}
	return true, nil
}

// said returns the event, then the newest other commands on record of its pull request, and all of
// those whose events may be writing the comment. There may be thousands of older ones.
func (s *Step) said(ctx context.Context, a *attempt.Attempt) ([]*v1alpha1.GitEvent, error) {
	var writing, others []*v1alpha1.GitEvent
	err := history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if other.Name == a.Event.Name || other.Status.Reply == nil {
			return true
		}
		kept := history.Trimmed(other)
		if s.writes(a, kept) {
			writing = append(writing, kept)
			return true
		}
		others = status.NewestCommands(append(others, kept))
		return true
	})
	return slices.Concat([]*v1alpha1.GitEvent{a.Event}, writing, others), err
}

// writes reports whether an event may be writing the comment.
func (s *Step) writes(a *attempt.Attempt, event *v1alpha1.GitEvent) bool {
	reply := event.Status.Reply
	return reply != nil && reply.Begun != nil && a.Clock.Since(reply.Begun.Time) <= beganLimit
}

// begin puts on record that the event is about to write the comment, and waits until nothing can
// take effect any more that a process before this one, or this one, may have sent. Whoever is on
// record as the holder may have: how it ended may have been lost.
func (s *Step) begin(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.Reply) error {
	now := metav1.NewTime(a.Clock.Now().Truncate(time.Second))
	switch {
	case reply.Begun == nil:
		reply.Begun = &now
	case reply.Holder == "": // it waits for its turn, and has sent nothing
		return nil
	case reply.Holder != s.Identity || reply.LateUntil == nil:
		until := metav1.NewTime(now.Add(s.Late))
		reply.LateUntil = &until
	}
	left := time.Duration(0)
	if reply.LateUntil != nil {
		left = reply.LateUntil.Sub(a.Clock.Now())
	}
	if left <= 0 {
		reply.LateUntil = nil
	}
	reply.Holder = s.Identity
	if err := a.Record.Write(ctx); err != nil {
		return err
	}
	if left > 0 {
		return fault.Throttledf(fault.ReasonBusy, left, "what was sent before may still take effect")
	}
	return nil
}

// hold puts on record, if it is not, that this process is about to send something.
func (s *Step) hold(ctx context.Context, a *attempt.Attempt, reply *v1alpha1.Reply) error {
	reply.Holder = s.Identity
	if err := a.Record.Write(ctx); err != nil {
		return err
	}
	return a.Record.Confirm(ctx)
}

// alone returns nil if no other event of the pull request may be writing the comment. Of two that
// have begun the older one goes first, unless the other one is in the middle of it; so the younger
// one takes its beginning back.
func (s *Step) alone(ctx context.Context, a *attempt.Attempt, events []*v1alpha1.GitEvent) error {
	waits, second := false, false
	for _, other := range events[1:] {
		if !s.writes(a, other) {
			continue
		}
		waits, second = true, second || status.CompareCommands(a.Event, other) > 0
	}
	switch {
	case second:
		a.Event.Status.Reply.Release()
		if err := a.Record.Write(ctx); err != nil {
			return err
		}
		return fault.Throttledf(fault.ReasonBusy, yielded, "another command of the pull request is answered first")
	case waits:
		return fault.Throttledf(fault.ReasonBusy, inTurn, "another command of the pull request is being answered")
	}
	return nil
}
