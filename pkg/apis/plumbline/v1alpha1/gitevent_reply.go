// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reply is what became of telling people what a command has started, and why not. All commands of a
// pull request are answered in one comment, which is edited in place. So only one event at a time
// writes it: the one that has Begun on record. See docs/adr/0038.
type Reply struct {
	// Command is what is answered, as it was written ("/test build"), without its arguments.
	Command string `json:"command"`
	// Untrusted is true if the command's author may give it because the pull request is theirs, and
	// for no other reason. Few of such commands are answered in a minute.
	// +optional
	Untrusted bool `json:"untrusted,omitempty"`
	// Begun is when the event took the right to write the comment; unset while it does not have it.
	// +optional
	Begun *metav1.Time `json:"begun,omitempty"`
	// Holder is the process that took it. Another one that goes on waits until what the holder has
	// sent can not take effect any more.
	// +optional
	Holder string `json:"holder,omitempty"`
	// LateUntil is until when a write whose outcome is not known may take effect. Nothing is
	// written before.
	// +optional
	LateUntil *metav1.Time `json:"lateUntil,omitempty"`
	// FailingSince is since when the Git service has not taken it, for whatever reasons; unset
	// while nothing fails.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`
	// Accepted is the digest of what the Git service has accepted of this command.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// GivenUp is why nobody is told, in one word ("PermissionMissing").
	// +optional
	GivenUp string `json:"givenUp,omitempty"`
}

// NotNamed is why a pipeline is not for a command that names others.
const NotNamed = "the command does not name it"

// NothingToCancel is the reason of a plan that would cancel runs, and there are none.
const NothingToCancel = "NothingToCancel"

// Release gives up the right to write the comment.
func (r *Reply) Release() { r.Begun, r.Holder, r.LateUntil = nil, "", nil }
