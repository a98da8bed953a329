// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Between two attempts, an event replaces older runs as it does while an attempt runs.
func TestEventReplacesBetweenAttempts(t *testing.T) {
	t.Parallel()
	event := &v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: []v1alpha1.Run{
		{Pipeline: "build", Name: "build-1", UID: "1", CancelInProgress: true},
		{Pipeline: "docs", Name: "docs-1", CancelInProgress: true},
	}}}
	event.Status.Runs[0].Retry("build-1-2", &v1alpha1.Result{})
	if got := replaces(event); !slices.Equal(got, []string{"build"}) {
		t.Errorf("it replaces %v, want what has started", got)
	}
}
