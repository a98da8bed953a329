// SPDX-License-Identifier: Apache-2.0

// Package status decides what a Git service is told about an event. Desired is the only place in
// Plumbline where a conclusion is made; it is pure, and its input holds no error that arose after a
// PipelineRun was created.
package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is how far a check is.
type State string

// The states of a check, named as GitHub names them.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
)

// Conclusion is a verdict. It is empty unless the state is Completed.
type Conclusion string

// The conclusions Plumbline sends. neutral is never sent: required checks count it as passing.
const (
	Success   Conclusion = "success"
	Failure   Conclusion = "failure"
	Cancelled Conclusion = "cancelled"
	Skipped   Conclusion = "skipped"
)

// Check is one report on one commit, in no service's own terms. Providers cut texts to their
// service's limits.
type Check struct {
	// Key identifies the check within the event: the PipelineRun's name, or EventKey.
	Key string
	// Name is what people see in the list of checks: "<application> / <pipeline>", or
	// "<application>".
	Name string
	// ExternalID finds the check again when its id was lost: the PipelineRun's deterministic name,
	// or the GitEvent's.
	ExternalID string
	// Former is what the version before called the check, if that was another ExternalID; "" if it
	// was not.
	FormerExternalID string `json:"-"`
	State            State
	Conclusion       Conclusion
	// Title is one line. Summary and Text are GitHub-flavoured Markdown.
	Title   string
	Summary string
	Text    string
	// Words is what failed or was refused as plain text, for services that show one line without
	// Markdown. It is empty where Title says everything.
	Words string `json:",omitempty"`
	// DetailsURL is where the run can be watched; empty if no console is configured.
	DetailsURL  string
	StartedAt   *metav1.Time
	CompletedAt *metav1.Time
	// OnlyOpen ends what is open and nothing else: no check is made, and one that has ended stays
	// as it is. It is set where nobody knows what was reported before.
	OnlyOpen bool `json:",omitempty"`
	// Shared tells that other events post this check as well: it is always looked for, before a
	// post and after the first one.
	Shared bool `json:",omitempty"`
}

// Is reports whether the check is what has this external id.
func (c Check) HasExternalID(externalID string) bool {
	return externalID == c.ExternalID || c.FormerExternalID != "" && externalID == c.FormerExternalID
}

// EventKey is the Key of the check that is about the event as a whole ("Pending approval").
const EventKey = "event"
