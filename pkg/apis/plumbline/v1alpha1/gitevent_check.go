// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Check is one report and what the Git service has accepted of it.
type Check struct {
	// Key identifies the check within the event: the PipelineRun's name, or "event" for the event's
	// own check.
	Key string `json:"key"`
	// Name is the check's name at the Git service.
	Name string `json:"name"`
	// ID is the service's id; empty until the service has told it.
	// +optional
	ID string `json:"id,omitempty"`
	// Intent is true from before the first attempt to post it: an empty ID then means "look it up
	// first".
	// +optional
	Intent bool `json:"intent,omitempty"`
	// Holder is the process that recorded the intent. Another one that finds no check may be too
	// early: the holder's post may still be under way.
	// +optional
	Holder string `json:"holder,omitempty"`
	// RecheckAt is when no late post can land any more. The event is not settled before the
	// concluded check was looked up once more then, and a duplicate closed. Unset when no post can
	// be late.
	// +optional
	RecheckAt *metav1.Time `json:"recheckAt,omitempty"`
	// Accepted is the digest of what the service accepted last.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// Concluded is true when what was accepted had a conclusion.
	// +optional
	Concluded bool `json:"concluded,omitempty"`
}
