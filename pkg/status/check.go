// SPDX-License-Identifier: Apache-2.0

// Package status makes the checks and replies that a Git service shows for an event. Desired is the
// only place in Plumbline where the conclusion of a check is made; providers only close duplicates,
// as cancelled. It is a pure function, and no error that arose after a PipelineRun was created
// changes a conclusion.
package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is the progress of a check.
type State string

// The states of a check, named as GitHub names them.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
)

// Conclusion is the verdict of a check. It is empty unless the state is Completed.
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
	// Key identifies the check within the event: the name of the first PipelineRun of the pipeline,
	// or EventKey.
	Key string
	// Name is what people see in the list of checks: "<application> / <pipeline>", or
	// "<application>".
	Name string
	// ExternalID finds the check again when its id was lost: the deterministic name of the first
	// PipelineRun, or the GitEvent's.
	ExternalID string
	// FormerExternalID is the ExternalID that the previous version used, if it was another one.
	FormerExternalID string `json:"-"`
	State            State
	Conclusion       Conclusion
	// Title is one line. Summary and Text are GitHub-flavoured Markdown.
	Title   string
	Summary string
	Text    string
	// Words says in plain text what failed or was refused, for services that show one line without
	// Markdown. It is empty where Title says everything.
	Words string `json:",omitempty"`
	// LogLine is the last line of the log of the first failed step, as plain text.
	LogLine string `json:",omitempty"`
	// Log is the part of Text about the logs of failed steps.
	Log string `json:"-"`
	// DetailsURL is where the run can be watched; empty if no console is configured.
	DetailsURL  string
	StartedAt   *metav1.Time
	CompletedAt *metav1.Time
	// OnlyOpen means: conclude the check if it exists and is pending, and change nothing else. It
	// is set where it is unknown what was reported before.
	OnlyOpen bool `json:",omitempty"`
	// Adopted means that Pipelines-as-Code has created the check. Where the service stores no
	// external id, it is found by its name. It goes with OnlyOpen.
	Adopted bool `json:",omitempty"`
	// Yields means that the check is only shown on a commit that has no other check of its name. A
	// real result, of whatever event, is never replaced by it.
	Yields bool `json:",omitempty"`
	// Shared means that other events post this check, too: it is always looked up before a post,
	// and after the first one.
	Shared bool `json:",omitempty"`
}

// HasExternalID reports whether the check is the one with this external id.
func (c Check) HasExternalID(externalID string) bool {
	return externalID == c.ExternalID || c.FormerExternalID != "" && externalID == c.FormerExternalID
}

// EventKey is the Key of the check that is about the event as a whole ("Pending approval").
const EventKey = "event"
