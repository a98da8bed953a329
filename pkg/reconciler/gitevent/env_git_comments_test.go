// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"runtime"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// conversation has the comments that we have written on a pull request.
type conversation struct {
	comments []string // of ours
	invalid  []string // of ours, about the files of .tekton
	failed   []string // of ours, about failed pipelines
	// results are of ours, by their marks; nil if the checks have room for results.
	results map[string]*[]string
	edits   int
	asked   func() error // may refuse a write
	looked  func()       // is called once between a look and the write that follows from it
}

// PutReply works like a real provider: it looks for the comment, and then writes it.
func (g *fakeGit) PutReply(ctx context.Context, _ int64, comment provider.Comment) error {
	text := comment.Text
	o := g.env.called("put reply")
	if g.replies.asked != nil && o.err == nil {
		o.err = g.replies.asked()
	}
	if o.err != nil && !o.apply {
		return o.err
	}
	if o.kill && !o.apply {
		runtime.Goexit()
	}
	ours := &g.replies.comments
	switch comment.Mark {
	case status.ReplyMark:
	case status.ValidationMark:
		ours = &g.replies.invalid
	case status.FailuresMark:
		ours = &g.replies.failed
	default:
		if g.replies.results[comment.Mark] == nil {
			g.replies.results[comment.Mark] = &[]string{}
		}
		ours = g.replies.results[comment.Mark]
	}
	none := len(*ours) == 0
	if looked := g.replies.looked; looked != nil {
		g.replies.looked = nil
		looked()
	}
	if err := provider.Fence(ctx); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(text, comment.Mark):
		return fault.Operatorf("BadReply", "a reply without its mark")
	case none && comment.OnlyEdit:
	case none:
		*ours = append(*ours, text)
	case (*ours)[0] != text:
		(*ours)[0] = text
		g.replies.edits++
	}
	if o.kill {
		runtime.Goexit()
	}
	if o.err != nil {
		return &fault.Error{Class: fault.Transient, Reason: "GitServiceUnavailable", Message: "502", Unknown: true}
	}
	return nil
}
