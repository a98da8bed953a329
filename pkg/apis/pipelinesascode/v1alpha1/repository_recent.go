// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of status.recent. Together its entries take at most some 15 KiB, and usually 3 KiB.
const (
	MaxRecent     = 10
	MaxRecentRuns = 10
)

// One event of the Git service and what Plumbline did about it.
type RecentEvent struct {
	// The name of the GitEvent, for the cluster's administrators.
	Event string `json:"event"`
	// The commit, empty for a comment that is not read yet.
	// +optional
	Commit string `json:"commit,omitempty"`
	// The branch, tag or pull request: "main", "tags/v1" or "#12".
	// +optional
	Ref string `json:"ref,omitempty"`
	// The kind of the event: push or pull_request.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// What happened, in a few words: "Succeeded", "Failed: 1 of 3", "Running", "Waiting: <reason>",
	// "Ignored: <reason>".
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// One word for what was decided, for example Selected, NoMatch or PendingApproval.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The decision as a sentence, cut to 256 bytes. It is set once the event is finished.
	// +optional
	Message string `json:"message,omitempty"`
	// The names of the first ten PipelineRuns.
	// +optional
	Runs []string `json:"runs,omitempty"`
	// When Plumbline recorded the event.
	Time metav1.Time `json:"time"`
	// When nothing was left to do; unset while the event is processed.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Newest returns the newest of these entries, the newest first. If two of them are about one event,
// it uses the later one in the list.
func Newest(all []RecentEvent) []RecentEvent {
	var kept []RecentEvent
	known := map[string]bool{}
	for _, entry := range slices.Backward(all) {
		if !known[entry.Event] {
			known[entry.Event], kept = true, append(kept, entry)
		}
	}
	slices.SortFunc(kept, func(a, b RecentEvent) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(b.Event, a.Event))
	})
	return kept[:min(len(kept), MaxRecent)]
}
