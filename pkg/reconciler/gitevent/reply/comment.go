// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// comment is one of the comments on a pull request that its events share.
type comment struct {
	step, mark, what string
	// of returns the state that an event has recorded, nil if there is none.
	of func(event *v1alpha1.GitEvent) *v1alpha1.CommentState
	// counts reports whether the comment may be about an event.
	counts func(event *v1alpha1.GitEvent) bool
	// newest returns the events that the comment is about, and text what it says about them.
	newest func(events []*v1alpha1.GitEvent) []*v1alpha1.GitEvent
	text   func(events []*v1alpha1.GitEvent) string
	// onlyEdit reports whether an event only edits the comment.
	onlyEdit func(event *v1alpha1.GitEvent) bool
	// limited reports whether few such events may write in a minute.
	limited func(event *v1alpha1.GitEvent) bool
}

// answers returns the comment that answers commands.
func answers() *comment {
	return &comment{
		step: v1alpha1.StepReply, mark: status.ReplyMark, what: "the reply to a command",
		of: func(event *v1alpha1.GitEvent) *v1alpha1.CommentState {
			if event.Status.Reply == nil {
				return nil
			}
			return &event.Status.Reply.CommentState
		},
		counts:   func(event *v1alpha1.GitEvent) bool { return event.Status.Reply != nil },
		newest:   status.NewestCommands,
		text:     status.Replies,
		onlyEdit: func(*v1alpha1.GitEvent) bool { return false },
		limited: func(event *v1alpha1.GitEvent) bool {
			return event.Status.Reply.Untrusted || status.Explains(event)
		},
	}
}

// has reports whether the comment is about an event.
func (c *comment) has(events []*v1alpha1.GitEvent, event *v1alpha1.GitEvent) bool {
	return slices.ContainsFunc(c.newest(events), func(e *v1alpha1.GitEvent) bool { return e.Name == event.Name })
}

// digest identifies what the comment says about one event. It is the same in every process.
func (c *comment) digest(event *v1alpha1.GitEvent) string {
	return status.TextDigest(c.text([]*v1alpha1.GitEvent{event}))
}

// put writes the comment.
func (c *comment) put(
	ctx context.Context, client *provider.Client, event *v1alpha1.GitEvent, events []*v1alpha1.GitEvent,
) error {
	err := client.PutReply(ctx, event.Spec.PullRequest.Number, provider.Comment{
		Mark: c.mark, Text: c.text(events), OnlyEdit: c.onlyEdit(event),
	})
	if err != nil {
		return refused(fmt.Errorf("writing %s: %w", c.what, err))
	}
	return nil
}

// contested reports whether one of the other events may be writing the comment, and whether one of
// these is older than the first event, which goes second then.
func (c *comment) contested(events []*v1alpha1.GitEvent, now time.Time) (waits, second bool) {
	for _, other := range events[1:] {
		if c.writes(other, now) {
			waits, second = true, second || status.CompareCommands(events[0], other) > 0
		}
	}
	return waits, second
}
