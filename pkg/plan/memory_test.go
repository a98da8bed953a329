// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// For any definitions, references and payload, planning one event uses at most its budget, measured
// by the garbage collector.
func TestPlanningReservesMemory(t *testing.T) {
	task := func(n int, step string) git.File {
		return git.File{Path: ".tekton/task.yaml",
			Data: []byte("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [" + strings.Repeat(step,
				n) + "]}\n")}
	}
	copies := func(runs int, large git.File) []git.File {
		files := []git.File{large}
		for i := range runs {
			files = append(files, edited(pipeline(fmt.Sprintf("p%03d", i)),
				"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]", "taskRef: {name: large}"))
		}
		return files
	}
	reads := []git.File{pipeline("reads", `on-cel-expression: 'body.commits.size() == 12345'`)}
	far := make([]git.File, 45)
	for i := range far {
		far[i] = edited(edited(pipeline(fmt.Sprintf("p%03d", i), `task: "[ci/far.yaml]"`),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]", "taskRef: {name: far}"))
	}
	sidecars := "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: far}\nspec: {steps: [{image: x}], sidecars: [" +
		strings.Repeat("{},", 9000) + "]}\n"
	for name, w := range map[string]*env{
		"45 PipelineRuns of a Task elsewhere": {
			files: append(far, git.File{Path: ".tekton/none.yaml"}), tree: map[string]string{"ci/far.yaml": sidecars},
		},
		"150 PipelineRuns of empty steps": {files: copies(150, task(990, "{},"))},
		"30 PipelineRuns of a long script": {
			files: copies(30, task(1, "{name: s, image: busybox, script: '"+strings.Repeat("0123456789abcdef", 60_000)+"'}")),
		},
		"a payload of 24 MB, most of it one value": {
			files: reads, payload: `{"commits":["` + strings.Repeat("x", 24_000_000) + `"]}`,
		},
		"a payload of many small objects": {
			files: reads, payload: `{"commits":[` + strings.Repeat("{},", 23_000) + `{}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var made *plan.Plan
			peak := held(func() { made = w.make(t, push()) })
			t.Logf("%d decisions, %d runs: %d MiB at most", len(made.Decisions), len(made.Runs), peak>>20)
			if len(created(made)) != len(w.files)-1 && !strings.HasPrefix(made.Decisions[0].Reason, "on-cel-expression") {
				t.Fatalf("%+v, want it to be planned", made.Decisions[0])
			}
			if peak > memory.MaxPart {
				t.Errorf("planning held %d MiB, want at most %d", peak>>20, memory.MaxPart>>20)
			}
		})
	}
}

// held returns how much the heap grew at most while f ran, in bytes. It takes what three
// collections in a row leave over, because each may count new objects as live.
func held(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	live := func() uint64 {
		runtime.GC()
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	idle, peak, last := live(), uint64(0), [3]uint64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for n := 0; ; n++ {
		last[n%len(last)] = live()
		peak = max(peak, slices.Min(last[:]))
		select {
		case <-done:
			return peak - min(peak, idle)
		default:
		}
	}
}
