// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

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
	of := &v1alpha1.Run{}
	created, finished, started := object{of: of}, object{of: of, finished: true}, object{of: of, started: true}
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
		"of a PipelineRun that nothing holds": {withID, started, &v1alpha1.Check{ID: "7"},
			resources.AnnotationPatch(nil, map[string]string{key: "7", pipelinesascode.StartReported: "true"})},
		"nothing else to add": {without, started, &v1alpha1.Check{ID: "7"}, nil},
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

// Kueue creates PipelineRuns pending.
func TestStartIsReportedOnceNothingHoldsThePipelineRun(t *testing.T) {
	t.Parallel()
	running, held := &pipelinev1.PipelineRun{}, &pipelinev1.PipelineRun{}
	held.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	done := &v1alpha1.Run{Result: &v1alpha1.Result{}}
	for name, c := range map[string]struct {
		run   *v1alpha1.Run
		found *pipelinev1.PipelineRun
		want  bool
	}{
		"running": {&v1alpha1.Run{}, running, true}, "held": {&v1alpha1.Run{}, held, false},
		"finished": {done, nil, true}, "not read": {&v1alpha1.Run{}, nil, false},
	} {
		if got := started(c.run, c.found); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
