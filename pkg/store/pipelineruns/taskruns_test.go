// SPDX-License-Identifier: Apache-2.0

package pipelineruns_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// pages is an API server that has so many TaskRuns for each run, each with large fields.
type pages struct {
	tektonv1.TaskRunInterface
	all     int
	largest int
	asked   []string
}

func (p *pages) List(_ context.Context, o metav1.ListOptions) (*pipelinev1.TaskRunList, error) {
	p.asked = append(p.asked, o.LabelSelector)
	from := 0
	_, _ = fmt.Sscan(o.Continue, &from)
	to := p.all
	if o.Limit > 0 {
		to = min(p.all, from+int(o.Limit))
	}
	p.largest = max(p.largest, to-from)
	list := &pipelinev1.TaskRunList{}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, *stuffed(i))
	}
	if to < p.all {
		list.Continue = fmt.Sprint(to)
	}
	return list, nil
}

// message is too long for a report.
func message() string { return "it failed " + strings.Repeat("ü", 40<<10) }

// stuffed is a failed TaskRun that a user has made large.
func stuffed(n int) *pipelinev1.TaskRun {
	now := metav1.Now()
	run := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "north", Name: fmt.Sprint("task-", n), Labels: map[string]string{"tekton.dev/pipelineTask": "build"},
		Annotations: map[string]string{"large": strings.Repeat("x", 1<<10)}, UID: "1",
	}}
	run.Spec.TaskRef = &pipelinev1.TaskRef{
		Name: "build", ResolverRef: pipelinev1.ResolverRef{Params: pipelinev1.Params{{Name: "large"}}},
	}
	run.Spec.Params = pipelinev1.Params{
		{Name: "large", Value: *pipelinev1.NewStructuredValues(strings.Repeat("x", 1<<10))},
	}
	run.Status.StartTime, run.Status.CompletionTime = &now, &now
	run.Status.RetriesStatus = []pipelinev1.TaskRunStatus{{}, {}}
	run.Status.Steps = make([]pipelinev1.StepState, 200)
	run.Status.Steps[0].Waiting = &corev1.ContainerStateWaiting{Message: message()}
	run.Status.Sidecars = make([]pipelinev1.SidecarState, 200)
	run.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: "False", Reason: "Failed", Message: message(),
	})
	return run
}

// A user may create many large TaskRuns that seem to be of a run. Few of them are decoded at once,
// and little of them is stored.
func TestTaskRunsOfIsBounded(t *testing.T) {
	t.Parallel()
	for all, want := range map[int]int{0: 0, 3: 3, 60: 60, 2000: 1000} {
		server := &pages{all: all}
		got, err := pipelineruns.TaskRunsOf(t.Context(), server, "hello")
		if err != nil || len(got) != want || server.largest > 25 {
			t.Errorf("of %d TaskRuns %d are read, %d at once, error %v; want %d", all, len(got), server.largest, err, want)
		}
		if server.asked[0] != "tekton.dev/pipelineRun=hello" {
			t.Errorf("asked for %s", server.asked[0])
		}
		for _, run := range got[:min(3, len(got))] {
			c := run.Status.GetCondition(apis.ConditionSucceeded)
			if len(c.Message) > 32<<10 || !strings.HasPrefix(c.Message, "it failed ü") || run.Annotations != nil ||
				run.Spec.Params != nil || run.Spec.TaskRef.Params != nil ||
				len(run.Status.Steps) != 100 || len(run.Status.Sidecars) != 100 ||
				len(run.Status.Steps[0].Waiting.Message) > 32<<10 {
				t.Errorf("too much is kept of %s", run.Name)
			}
			if !run.IsFailure() || run.Spec.TaskRef.Name != "build" || run.Labels["tekton.dev/pipelineTask"] != "build" ||
				len(run.Status.RetriesStatus) != 2 || run.UID == "" || // Pods are its own by its UID
				run.Status.StartTime == nil || run.Status.CompletionTime == nil {
				t.Errorf("something that a report needs is missing: %+v", run)
			}
		}
	}
}

// corpus has the statuses of failed runs on which verdicts are tested.
const corpus = "../../status/testdata/corpus/*.yaml"

// one is an API server that has the TaskRuns of one run.
type one struct {
	tektonv1.TaskRunInterface
	taskRuns []pipelinev1.TaskRun
}

func (o one) List(context.Context, metav1.ListOptions) (*pipelinev1.TaskRunList, error) {
	return &pipelinev1.TaskRunList{Items: o.taskRuns}, nil
}

// What is left out of a PipelineRun and of its TaskRuns changes no verdict.
func TestTrimmedRunsHaveTheSameVerdict(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(corpus)
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus at %s: %v", corpus, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole, server := &pipelinev1.PipelineRun{}, one{}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			into := any(whole)
			if !strings.Contains(document, "\nkind: PipelineRun\n") {
				server.taskRuns = append(server.taskRuns, pipelinev1.TaskRun{})
				into = &server.taskRuns[len(server.taskRuns)-1]
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		trimmed, err := pipelineruns.TaskRunsOf(t.Context(), server, whole.Name)
		if err != nil {
			t.Fatal(err)
		}
		var all []*pipelinev1.TaskRun
		for i := range server.taskRuns {
			all = append(all, &server.taskRuns[i])
			if got, want := diagnosis.NeedsPod(trimmed[i]), diagnosis.NeedsPod(all[i]); got != want {
				t.Errorf("%s: NeedsPod is %v for the trimmed TaskRun, %v for the whole one", file, got, want)
			}
		}
		got := diagnosis.Diagnose(pipelineruns.TrimRun(whole), trimmed, diagnosis.Facts{})
		if want := diagnosis.Diagnose(whole, all, diagnosis.Facts{}); got != want {
			t.Errorf("%s: the verdict on the trimmed run is %+v, on the whole one %+v", file, got, want)
		}
	}
}
