// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reply is the state of the answer to a command: what it started, and why not more. All commands of
// a pull request are answered in one comment, which is edited.
type Reply struct {
	// The command as written ("/test build"), without its arguments.
	Command string `json:"command"`
	// True if the user may give the command only because it is the user's own pull
	// request. Few such commands are answered in a minute.
	// +optional
	Untrusted    bool `json:"untrusted,omitempty"`
	CommentState `json:",inline"`
}

// CommentState is the state of a comment on a pull request that several events share. Only one
// event at a time writes it: the one with Begun (docs/adr/0039).
type CommentState struct {
	// When the event got the right to write the comment; unset while it does not have it.
	// +optional
	Begun *metav1.Time `json:"begun,omitempty"`
	// The process that got it. Another process waits until the holder's requests can no
	// longer take effect.
	// +optional
	Holder string `json:"holder,omitempty"`
	// Until when a request with an unknown result may take effect. Nothing is written
	// before.
	// +optional
	LateUntil *metav1.Time `json:"lateUntil,omitempty"`
	// When the Git service started to refuse the comment, for any reason; unset
	// while nothing fails.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`
	// The digest of the answer that the Git service accepted for this event.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// Why the comment is not written, in one word ("PermissionMissing").
	// +optional
	GivenUp string `json:"givenUp,omitempty"`
}

// NotNamed is the reason of a pipeline that a command does not name, although it names others.
const NotNamed = "the command does not name it"

// NothingToCancel is the reason of a plan that should cancel runs but finds none.
const NothingToCancel = "NothingToCancel"

// Explained is the reason of the plan of a /why. Its decisions are the answer.
const Explained = "Explained"

// Release releases the right to write the comment.
func (s *CommentState) Release() { s.Begun, s.Holder, s.LateUntil = nil, "", nil }
