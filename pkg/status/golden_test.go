// SPDX-License-Identifier: Apache-2.0

package status

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/<name>.md; go test -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".md")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// at is a time the given seconds after the start of all runs.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC)}
}

func consoleLinks() Links {
	return Links{
		ConsoleName: "Tekton Dashboard", Run: "https://console/run", Namespace: "https://console/ns",
		Task: func(task TaskLink) string { return "https://console/run?pipelineTask=" + task.Name },
	}
}

func archiveLinks() Links {
	links := consoleLinks()
	links.Archive = "https://results/ci/build-abc?a=1&b=2"
	return links
}

func succeeded(status corev1.ConditionStatus, reason, message string) *apis.Condition {
	return &apis.Condition{Type: apis.ConditionSucceeded, Status: status, Reason: reason, Message: message}
}

func pipelineRun(condition *apis.Condition) *pipelinev1.PipelineRun {
	pr := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Name: "build-abc", Namespace: "ci"}}
	pr.Status.StartTime, pr.Status.CompletionTime = at(0), at(50)
	if condition != nil {
		pr.Status.SetCondition(condition)
	}
	return pr
}

// taskRun makes a TaskRun that started and ended at the given seconds; negative means that it did
// not.
func taskRun(task string, start, end int, condition *apis.Condition) *pipelinev1.TaskRun {
	tr := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
		Name: "build-abc-" + task, Namespace: "ci", Labels: map[string]string{"tekton.dev/pipelineTask": task},
	}}
	if start >= 0 {
		tr.Status.StartTime = at(start)
	}
	if end >= 0 {
		tr.Status.CompletionTime = at(end)
	}
	if condition != nil {
		tr.Status.SetCondition(condition)
	}
	return tr
}
