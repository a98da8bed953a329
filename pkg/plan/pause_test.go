// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// Rendering a large plan calls Pause before it continues, and ends with its error.
func TestRenderingAsksBeforeItContinues(t *testing.T) {
	t.Parallel()
	files := []git.File{{Path: ".tekton/task.yaml",
		Data: []byte("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [" + strings.Repeat("{},",
			990) + "]}\n")}}
	for i := range 150 {
		files = append(files, edited(pipeline(fmt.Sprintf("p%03d", i)),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]", "taskRef: {name: large}"))
	}
	sources := (&env{files: files}).sources()
	var rested time.Duration
	sources.Pause = func(_ context.Context, work time.Duration) error {
		rested += work
		return nil
	}
	made, err := plan.Make(t.Context(), push(), sources)
	if err != nil || len(created(made)) != 150 || rested == 0 {
		t.Fatalf("%d PipelineRuns are planned, and %v of work rested: %v", len(created(made)), rested, err)
	}
	busy := errors.New("busy")
	sources.Pause = func(context.Context, time.Duration) error { return busy }
	if made, err = plan.Make(t.Context(), push(), sources); !errors.Is(err, busy) || len(made.Runs) != 0 {
		t.Errorf("%d PipelineRuns are planned although others are at work: %v", len(made.Runs), err)
	}
}

// Checking PipelineRuns against a Pod Security level is work too.
func TestPodSecurityChecksAskBeforeTheyContinue(t *testing.T) {
	t.Parallel()
	large := "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [" +
		strings.Repeat("{securityContext: {privileged: false}},", 900) + "]}\n"
	files := []git.File{{Path: ".tekton/task.yaml", Data: []byte(large)}}
	for i := range 5 {
		files = append(files, edited(pipeline(fmt.Sprint("p", i)),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]", "taskRef: {name: large}"))
	}
	for level, pauses := range map[string]bool{"": false, "baseline": true} {
		var rested time.Duration
		sources := (&env{files: files}).sources()
		sources.Pause = func(_ context.Context, work time.Duration) error { rested += work; return nil }
		in := push()
		in.Config.RunLimits.PodSecurity = level
		made, err := plan.Make(t.Context(), in, sources)
		if err != nil || len(created(made)) != 5 || (rested > 0) != pauses {
			t.Errorf("level %q: %d PipelineRuns are planned, %v of work rested: %v, want a rest: %t", level,
				len(created(made)), rested, err, pauses)
		}
	}
}

// After the maximum work nothing is rendered: each later pipeline says why, and its references are
// not read.
func TestRenderingStopsAfterTooMuchWork(t *testing.T) {
	t.Parallel()
	large := "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [" + strings.Repeat("{},",
		990) + "]}\n"
	w := &env{payload: `{"ref": "main"}`, files: []git.File{{Path: ".tekton/task.yaml", Data: []byte(large)}}}
	// more steps than are rendered, after the work
	tasks := "taskRef: {name: large}\n" + strings.Repeat("      - {name: more, taskRef: {name: large}}\n", 15)
	for i := range 240 {
		w.files = append(w.files, edited(pipeline(fmt.Sprintf("p%03d", i)),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]", tasks))
	}
	w.files = append(w.files, edited(pipeline("z"), "busybox", "{{ body.ref }}"))
	made, err := plan.Make(t.Context(), push(), w.sources())
	if err != nil {
		t.Fatal(err)
	}
	first, last := made.Runs[0].Refused, made.Runs[240].Refused
	if first == nil || first.Reason != "TooManySteps" || last == nil || last.Reason != "TooMuchWork" ||
		slices.Contains(w.asked, "payload") {
		t.Errorf("the first is refused as %+v, the last as %+v, and asked is %v", first, last, w.asked)
	}
}
