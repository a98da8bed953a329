// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S23: whether an approved commit runs confined does not depend on the order of two workers. An
// untrusted user has pushed to a writer's pull request. The event of that push is recorded but not
// planned yet (after an outage, for example) when the approval is planned.
func TestUntrustedPushRunsConfinedInAnyOrder(t *testing.T) {
	t.Parallel()
	pushed := onRecord("pull-2", sha, 3, "")
	pushed.Event.Spec.Before, pushed.Event.Spec.Actor, pushed.Event.Status = laterSHA, "stranger",
		v1alpha1.GitEventStatus{}
	w := &env{files: []git.File{pulled("a")}, writers: "member author", said: "/test", moved: sha}
	w.records = append(w.records, onRecord("pull-1", laterSHA, 1, v1alpha1.DispositionRuns), pushed)
	made, err := plan.Make(t.Context(), saying("member"), w.sources())
	if err == nil && len(made.Runs) > 0 && (made.Approval == nil || made.DefinitionSHA != defaultSHA) {
		t.Errorf("it runs with definitions of %s, approved by %+v", made.DefinitionSHA, made.Approval)
	}
}
