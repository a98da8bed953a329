// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Explain returns what became of the pipelines of a commit, as recorded for the event's pull
// request: of all, or of those that are named. It stores none of the events, of which there may be
// thousands.
func (a *Attempt) Explain(
	ctx context.Context, events history.Lister, sha string, names []string,
) ([]v1alpha1.Decision, error) {
	why := status.Why{Commit: sha}
	err := history.Each(ctx, events, a.Event.Spec.Subjects(), func(event *v1alpha1.GitEvent) bool {
		why.Add(event)
		return true
	})
	return why.Decisions(names), err
}
