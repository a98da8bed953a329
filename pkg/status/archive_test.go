// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestDeletedRunLeadsToItsArchive(t *testing.T) {
	run := endedRun(v1alpha1.OutcomeDeleted)
	run.Result.Text = ""
	in := Input{
		Application: "Plumbline CI",
		Event:       event(v1alpha1.DispositionRuns),
		Runs:        []RunState{{Run: run, Links: archiveLinks()}},
	}
	got := Desired(in)[0]
	golden(t, "check-deleted-archived", got.Summary+"\n\n"+got.Text)
	if got.Conclusion != Cancelled || got.DetailsURL != archiveLinks().Archive {
		t.Errorf("%+v", got)
	}
}
