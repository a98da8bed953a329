// SPDX-License-Identifier: Apache-2.0

package config

// CancelInProgress says whether a new run cancels the older runs of its pipeline where its author
// does not say.
type CancelInProgress struct {
	// PullRequests is for runs of the same pull request, Pushes for those of the same branch or
	// tag.
	PullRequests, Pushes bool
}

func (p *parser) cancelInProgress(previous CancelInProgress) CancelInProgress {
	return CancelInProgress{
		PullRequests: p.boolean(keyCancelPulls, false, previous.PullRequests),
		Pushes:       p.boolean(keyCancelPushes, false, previous.Pushes),
	}
}
