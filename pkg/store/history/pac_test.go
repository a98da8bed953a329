// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const pacSHA = "0123456789012345678901234567890123456789"

// ofPaC is a PipelineRun with the labels and annotations that Pipelines-as-Code v0.49.0 gives it
// (its pkg/kubeinteraction/labels.go); status is that of the condition, "" for none.
func ofPaC(name, status string, minute int, change func(*pipelinev1.PipelineRun)) *pipelinev1.PipelineRun {
	run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ci", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0)),
		Labels: map[string]string{
			"app.kubernetes.io/managed-by":       "pipelinesascode.tekton.dev",
			"pipelinesascode.tekton.dev/sha":     pacSHA,
			"pipelinesascode.tekton.dev/state":   "completed",
			pipelinesascode.PullRequest:          "3",
			"pipelinesascode.tekton.dev/url-org": "acme",
		},
		Annotations: map[string]string{
			"pipelinesascode.tekton.dev/repository":      "app",
			"pipelinesascode.tekton.dev/branch":          "main",
			"pipelinesascode.tekton.dev/original-prname": "build-",
		},
	}}
	if status != "" {
		run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionStatus(status)})
	}
	if change != nil {
		change(run)
	}
	return run
}

func pushed(branch string) func(*pipelinev1.PipelineRun) {
	return func(run *pipelinev1.PipelineRun) {
		delete(run.Labels, pipelinesascode.PullRequest)
		run.Annotations[pipelinesascode.Branch] = branch
	}
}

func TestOfPaCSelectsRunsOfTheCommit(t *testing.T) {
	t.Parallel()
	client := fake.NewSimpleClientset(
		ofPaC("newer", "True", 3, nil), ofPaC("older", "False", 1, nil), ofPaC("running", "Unknown", 4, nil),
		ofPaC("new", "", 5, nil),
		ofPaC("ours", "True", 6, func(run *pipelinev1.PipelineRun) { run.Labels[plumbline.InstallationLabel] = "plumbline" }),
		ofPaC("by-hand", "True", 6, func(run *pipelinev1.PipelineRun) { delete(run.Labels, pipelinesascode.ManagedByLabel) }),
		ofPaC("other-repository", "True", 6, func(run *pipelinev1.PipelineRun) {
			run.Annotations[pipelinesascode.Repository] = "web"
		}),
		ofPaC("other-commit", "False", 2, func(run *pipelinev1.PipelineRun) {
			run.Labels[pipelinesascode.SHA] = strings.Repeat("a", 40)
		}),
		ofPaC("other-pull", "True", 6, func(run *pipelinev1.PipelineRun) { run.Labels[pipelinesascode.PullRequest] = "4" }),
		ofPaC("push", "True", 6, pushed("refs/heads/main")), ofPaC("command", "True", 7, pushed("main")),
		ofPaC("tag", "True", 6, pushed("refs/tags/main")),
	).TektonV1().PipelineRuns("ci")
	for name, c := range map[string]struct {
		of   history.PaCRunsOf
		want string
	}{
		"a pull request": {history.PaCRunsOf{Repository: "app", SHA: pacSHA, Pull: 3, Ref: "main"},
			"older=finished newer=succeeded running= new="},
		"all commits of one": {history.PaCRunsOf{Repository: "app", Pull: 3, Ref: "main"},
			"older=finished other-commit=finished newer=succeeded running= new="},
		"a push": {history.PaCRunsOf{Repository: "app", SHA: pacSHA, Ref: "refs/heads/main"},
			"push=succeeded command=succeeded"},
		"a tag": {history.PaCRunsOf{Repository: "app", SHA: pacSHA, Ref: "refs/tags/main"}, "tag=succeeded"},
	} {
		runs, err := history.OfPaC(t.Context(), client, c.of)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, run := range runs {
			end := map[bool]string{true: "finished"}[run.Finished]
			if run.Succeeded {
				end = "succeeded"
			}
			got = append(got, run.Name+"="+end)
			if run.Pipeline != "build-" {
				t.Errorf("%s is of pipeline %q", run.Name, run.Pipeline)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A user of the namespace may create any number of PipelineRuns with these labels.
func TestOfPaCReadsABoundedNumber(t *testing.T) {
	t.Parallel()
	client := fake.NewSimpleClientset()
	pages := 0
	client.PrependReactor("list", "pipelineruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pages++
		list := &pipelinev1.PipelineRunList{ListMeta: metav1.ListMeta{Continue: "more"}}
		for i := range action.(clienttesting.ListActionImpl).ListOptions.Limit {
			list.Items = append(list.Items, *ofPaC(fmt.Sprint("run-", pages, "-", i), "True", 1, nil))
		}
		return true, list, nil
	})
	runs, err := history.OfPaC(t.Context(), client.TektonV1().PipelineRuns("ci"),
		history.PaCRunsOf{Repository: "app", SHA: pacSHA, Pull: 3})
	if err != nil || len(runs) != 200 || pages != 20 {
		t.Errorf("%d runs in %d pages: %v", len(runs), pages, err)
	}
}

func TestOfPaCReportsRefusals(t *testing.T) {
	t.Parallel()
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("refused")
	})
	of := history.PaCRunsOf{Repository: "app", SHA: pacSHA, Pull: 3}
	if _, err := history.OfPaC(t.Context(), client.TektonV1().PipelineRuns("ci"), of); fault.Of(err) == nil {
		t.Errorf("%v is no fault", err)
	}
	of.SHA = "not a label"
	if _, err := history.OfPaC(t.Context(), client.TektonV1().PipelineRuns("ci"), of); err == nil {
		t.Error("a commit that cannot be a label is selected")
	}
}
