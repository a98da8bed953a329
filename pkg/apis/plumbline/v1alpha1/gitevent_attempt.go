// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxInfrastructureRetries is the most that a pipeline may ask for. It bounds what an event stores.
const MaxInfrastructureRetries = 3

// FailedAttempt is a PipelineRun that failed because of the cluster, and that another PipelineRun
// of the same pipeline has replaced.
type FailedAttempt struct {
	// The name of the PipelineRun.
	Name string `json:"name"`
	// The UID of the PipelineRun.
	UID types.UID `json:"uid"`
	// What failed, in a few words of plain text.
	// +optional
	Cause string `json:"cause,omitempty"`
	// When the PipelineRun finished.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// The digest of the metadata that was last written to the PipelineRun.
	// +optional
	Patched string `json:"patched,omitempty"`
}

// Key returns the name of the run's first PipelineRun. It identifies the run in the plan, its
// check, and its slot, whichever attempt is under way.
func (r *Run) Key() string {
	if len(r.Attempts) > 0 {
		return r.Attempts[0].Name
	}
	return r.Name
}

// Attempt returns the number of the attempt whose PipelineRun is called Name, from 1 on.
func (r *Run) Attempt() int { return len(r.Attempts) + 1 }

// Retries reports whether the run gets another attempt if the cluster makes this one fail.
func (r *Run) Retries() bool { return len(r.Attempts) < int(r.InfrastructureRetries) }

// Started reports whether a PipelineRun of the run is known to have existed.
func (r *Run) Started() bool { return r.UID != "" || len(r.Attempts) > 0 }

// Retry replaces the finished PipelineRun of the run with one of another name that is to be
// created.
func (r *Run) Retry(name string, ended *Result) {
	failed := FailedAttempt{Name: r.Name, UID: r.UID, Cause: ended.Cause, CompletedAt: ended.CompletedAt}
	r.Attempts = append(r.Attempts[:len(r.Attempts):len(r.Attempts)], failed)
	r.Name, r.UID, r.Result, r.Patched, r.SecretOwned = name, "", nil, "", false
}

// Words returns in one line what failed: the cause if it is known, else what Tekton says.
func (r *Result) Words() string { return cmp.Or(r.Cause, r.Brief, r.Message, r.Reason) }
