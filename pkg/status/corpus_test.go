// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// leastCorpus is the least number of files in the corpus.
const leastCorpus = 60

// The corpus has statuses of failed PipelineRuns as Tekton writes them. A file's first line says
// whether Tekton wrote it (test/verdicts), or from which source it was written by hand. The golden
// file has the verdict and the title of each.
func TestVerdictsOnCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < leastCorpus {
		t.Errorf("the corpus has %d files, want at least %d", len(files), leastCorpus)
	}
	origin := regexp.MustCompile(`^# (Written by Tekton; |By hand: .)`)
	var lines []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !origin.Match(data) {
			t.Errorf("%s does not say in its first line where it is from", file)
		}
		pr, taskRuns := corpusRun(t, file, string(data))
		d := diagnosis.Diagnose(pr, taskRuns, diagnosis.Facts{})
		result := ResultOf(pr, taskRuns, Links{}, diagnosis.Facts{}, 0)
		if result == nil || result.Verdict != d.Verdict || result.Cause != d.Cause ||
			result.Outcome != v1alpha1.OutcomeFailed {
			t.Errorf("%s: the result %+v is not that of the diagnosis %+v", file, result, d)
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |",
			strings.TrimSuffix(filepath.Base(file), ".yaml"), d.Verdict, diagnosis.Title(d.Verdict, d.Cause)))
	}
	golden(t, "verdicts", "| status | verdict | title |\n|---|---|---|\n"+strings.Join(lines, "\n"))
}

func corpusRun(t *testing.T, file, data string) (pr *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun) {
	t.Helper()
	for document := range strings.SplitSeq(data, "\n---\n") {
		var err error
		if strings.Contains(document, "\nkind: PipelineRun\n") {
			pr = &pipelinev1.PipelineRun{}
			err = yaml.UnmarshalStrict([]byte(document), pr)
		} else {
			taskRuns = append(taskRuns, &pipelinev1.TaskRun{})
			err = yaml.UnmarshalStrict([]byte(document), taskRuns[len(taskRuns)-1])
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return pr, taskRuns
}

// The verdict on a step that failed by itself stays the author's, although the Pod was ended later,
// and a signal ended an earlier step whose failure is ignored.
func TestPodDoesNotExcuseStepThatFailedByItself(t *testing.T) {
	data, err := os.ReadFile("testdata/corpus/continued-step-killed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pr, taskRuns := corpusRun(t, "continued-step-killed", string(data))
	if diagnosis.NeedsPod(taskRuns[0]) {
		t.Error("NeedsPod is true")
	}
	d := diagnosis.Diagnose(
		pr,
		taskRuns,
		diagnosis.Facts{Pods: map[string]*corev1.PodStatus{"build-unit-pod": {Reason: "Terminated"}}},
	)
	if d.Verdict != v1alpha1.VerdictAuthor {
		t.Errorf("%s: %s", d.Verdict, diagnosis.Title(d.Verdict, d.Cause))
	}
}
