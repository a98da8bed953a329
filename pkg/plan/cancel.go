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
	// maxAnnotation is the bytes of such an annotation, with all of these names: JSON, which takes six for one of some characters. An event
	// takes note of 50 cancellations (v1alpha1.MaxCancellations), and all annotations of an object may have 256 KiB.
	maxAnnotation = 4500
)

// cancelled is the plan of a comment that asks to end runs, by somebody who may: of all that was started for its pull request, or for the
// branch or tag at its commit, before the comment was written, or of the pipelines that it names (S26).
func (p *planner) cancelled() *Plan {
	names, ref := p.command.Names, ""
	if p.onCommit() {
		ref = p.spec.BaseRef
	}
	made := p.cancel("CancelRequested", v1alpha1.Cancellation{By: p.spec.Sender, Names: names, Ref: ref, Why: p.spec.Sender + " asked for it in a comment"})
	if _, value, err := made.Cancels.CancelsAs(p.Event.Name); len(names) > maxCancelled || err != nil || len(value) > maxAnnotation {
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, reasonTooManyNames,
			fmt.Sprintf("nothing was cancelled: a comment may name %d pipelines, of some %d bytes together", maxCancelled, maxAnnotation))
	}
	return made
}
