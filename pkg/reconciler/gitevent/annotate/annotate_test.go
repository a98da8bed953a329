// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

func TestPatchHasTheCheckIDAndTheStateOfAConcludedCheck(t *testing.T) {
	t.Parallel()
	const key, state = "example/check-id", pipelinesascode.State
	withID := func(id string) (labels, annotations map[string]string) {
		return map[string]string{}, map[string]string{key: id}
	}
	without := func(string) (labels, annotations map[string]string) {
		return map[string]string{}, map[string]string{}
	}
	created, finished := object{}, object{finished: true}
	for name, test := range map[string]struct {
		metadata func(string) (labels, annotations map[string]string)
		of       object
		check    *v1alpha1.Check
		want     []byte
	}{
		"no check":                {withID, created, nil, nil},
		"the check has no ID yet": {withID, created, &v1alpha1.Check{Intent: true}, nil},
		"nothing to add":          {without, created, &v1alpha1.Check{ID: "7"}, nil},
		"an accepted check": {
			withID, created, &v1alpha1.Check{ID: "7"}, resources.AnnotationPatch(nil, map[string]string{key: "7"}),
		},
		"a conclusion, of whatever checks": {without, created, &v1alpha1.Check{ID: "7", Concluded: true},
			resources.AnnotationPatch(map[string]string{state: "completed"}, map[string]string{state: "completed"})},
		"a conclusion that is shown nowhere": {withID, created, &v1alpha1.Check{Concluded: true},
			resources.AnnotationPatch(map[string]string{state: "completed"}, map[string]string{state: "completed"})},
		"an earlier attempt": {without, finished, &v1alpha1.Check{ID: "7"},
			resources.AnnotationPatch(map[string]string{state: "completed"}, map[string]string{state: "completed"})},
	} {
		patch, digest := patchOf(test.metadata, test.of, test.check)
		if string(patch) != string(test.want) || (digest == "") != (test.want == nil) {
			t.Errorf("%s: %s (%s), want %s", name, patch, digest, test.want)
		}
	}
	_, first := patchOf(withID, created, &v1alpha1.Check{ID: "7"})
	if _, second := patchOf(withID, created, &v1alpha1.Check{ID: "8"}); first == second {
		t.Error("two patches have the same digest")
	}
}

func TestEachAttemptHasItsOwnPatch(t *testing.T) {
	t.Parallel()
	run := &v1alpha1.Run{Name: "build-2", Attempts: []v1alpha1.FailedAttempt{{Name: "build", UID: "uid"}}}
	if all := objectsOf(run); len(all) != 1 || all[0].name != "build" || all[0].finished {
		t.Errorf("the second attempt is not created: %+v", all)
	}
	run.UID = "uid-2"
	all := objectsOf(run)
	if len(all) != 2 || !all[0].finished || all[1].name != "build-2" || all[1].finished {
		t.Fatalf("both exist: %+v", all)
	}
	*all[0].patched = "digest"
	if run.Attempts[0].Patched != "digest" || run.Patched != "" {
		t.Errorf("the patch of the first attempt is recorded as %+v", run)
	}
}
