// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// One check and what the Git service has accepted of it.
type Check struct {
	// What identifies the check within the event: the name of the first PipelineRun of its
	// pipeline, or "event" for the event's own check.
	Key string `json:"key"`
	// The check's name at the Git service.
	Name string `json:"name"`
	// The service's id; empty until the service has returned it.
	// +optional
	ID string `json:"id,omitempty"`
	// True from before the first attempt to post the check. An empty id then means: look
	// it up first.
	// +optional
	Intent bool `json:"intent,omitempty"`
	// The process that recorded the intent. Another process that finds no check waits,
	// because the holder's request may still be in flight.
	// +optional
	Holder string `json:"holder,omitempty"`
	// When no late request can arrive any more. The concluded check is then read once
	// more and a duplicate closed, before the event settles. It is unset when no request can be
	// late.
	// +optional
	RecheckAt *metav1.Time `json:"recheckAt,omitempty"`
	// The digest of the report that the service accepted last.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// True when that report had a conclusion.
	// +optional
	Concluded bool `json:"concluded,omitempty"`
	// True if the check has all annotations on source lines, or gets no more of them.
	// +optional
	Annotated bool `json:"annotated,omitempty"`
}
