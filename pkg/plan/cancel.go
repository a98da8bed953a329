// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// maxCancelled is the names that one command may end the runs of, each of at most 253 bytes as names of pipelines are: they are
	// copied into an annotation of each event that is cancelled.
	maxCancelled = 50
	// maxAnnotation is the bytes of that annotation, in JSON: it writes some characters as six. An event takes note of 50 cancellations
	// (v1alpha1.MaxCancellations), and all annotations of an object may have 256 KiB.
	maxAnnotation = 4 << 10
)

// cancelled is the plan of a comment that asks to end runs, by somebody who may: of all that was started for its pull request, or for the
// branch or tag at its commit, before the comment was written, or of the pipelines that it names (S26).
func (p *planner) cancelled() *Plan {
	names, ref := p.command.Names, ""
	if p.onCommit() {
		ref = p.spec.BaseRef
	}
	c := v1alpha1.Cancellation{By: p.spec.Sender, Names: names, Ref: ref, Why: p.spec.Sender + " asked for it in a comment"}
	_, encoded, err := c.CancelsAs(p.Event.Name)
	if len(names) > maxCancelled || len(names) > 0 && len(encoded) > maxAnnotation || err != nil {
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, "TooManyNames",
			fmt.Sprintf("nothing was cancelled: a comment may name %d pipelines, of about %d bytes together", maxCancelled, maxAnnotation))
	}
	return p.cancel("CancelRequested", c)
}
