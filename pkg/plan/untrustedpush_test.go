// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// S10: an untrusted user has pushed to a writer's pull request from another repository, and the
// push waits for approval. A writer's remark that matches on-comment approves nothing: otherwise
// the untrusted definitions would run, with every secret.
func TestRemarkDoesNotRunUntrustedPush(t *testing.T) {
	t.Parallel()
	for name, known := range map[string][]history.Record{
		"it waits since before the remark": {
			onRecord("pull-1", laterSHA, 1, v1alpha1.DispositionRuns), onRecord("pull-2", sha, 3, v1alpha1.DispositionPending),
		},
		"it was pushed after the remark": {
			onRecord("pull-1", laterSHA, 1, v1alpha1.DispositionRuns), onRecord("pull-2", sha, 7, v1alpha1.DispositionPending),
		},
	} {
		known[1].Event.Spec.Before, known[1].Event.Spec.Actor = laterSHA, "stranger"
		w := &env{files: []git.File{pipeline("deploy", "on-comment: ^LGTM")}, writers: "member author", said: "LGTM",
			moved: sha, records: known}
		if made := w.make(t, saying("member")); len(made.Runs) != 0 {
			t.Errorf("%s: %s runs with definitions of %s, approved by %+v", name, made.HeadSHA, made.DefinitionSHA,
				made.Approval)
		}
	}
}
