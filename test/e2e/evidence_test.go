// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// patchFailures is the counter of failed patches on the controller's Prometheus page.
const patchFailures = "plumbline_pipelinerun_patch_failures_total"

// Annotation lines for pipeline: what the cluster plays, and pods that do not end until the test
// releases their run.
const (
	held  = cluster.HoldAnnotation + `: "true"`
	fails = cluster.ExitCodeAnnotation + `: "1"`
)

// in is the world as a subtest of its owner sees it.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t = t
	return &sub
}

// controller is the world's only controller.
func (w *world) controller() *installation.Process { return w.controllers[0] }

// logged are the errors a process logged at error level, one a line, in their order.
func (w *world) logged(p *installation.Process) []string {
	w.t.Helper()
	var found []string
	lines := bufio.NewScanner(strings.NewReader(w.log(p)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Severity, Level, Error string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || !strings.EqualFold(line.Severity+line.Level, "error") {
			continue
		}
		found = append(found, line.Error)
	}
	w.must(lines.Err())
	return found
}

// number adds up the samples on a process's Prometheus page whose lines contain all the words, less
// what they were before the world.
func (w *world) number(p *installation.Process, words ...string) int {
	w.t.Helper()
	sum := func(page string) (sum int) {
		for _, line := range strings.Split(page, "\n") {
			if line == "" || line[0] == '#' || !containsAll(line, words...) {
				continue
			}
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			w.must(err)
			sum += int(value)
		}
		return sum
	}
	now := sum(w.page(p))
	if w.pooled != nil {
		now -= sum(w.pooled.pages[p])
	}
	return now
}

// told are the Kubernetes Events on the Repository that speak of one GitEvent, by reason.
func (w *world) told(event string) map[string]int {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Events(w.ci).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Repository"})
	w.must(err)
	reasons := map[string]int{}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Message, event) {
			reasons[list.Items[i].Reason] += int(max(1, list.Items[i].Count))
		}
	}
	return reasons
}

// tells waits until the Repository has so many Kubernetes Events with a reason that speak of one
// GitEvent.
func (w *world) tells(event, reason string, n int) {
	w.t.Helper()
	w.eventually(soon, fmt.Sprintf("the Repository has %d Kubernetes Events with reason %s", n, reason), func() error {
		if told := w.told(event); told[reason] != n {
			return fmt.Errorf("those about %s are %v", event, told)
		}
		return nil
	})
}

// toldOnce requires at most one Kubernetes Event for each reason about a GitEvent.
func (w *world) toldOnce(event string) {
	w.t.Helper()
	for reason, n := range w.told(event) {
		if n > 1 {
			w.t.Errorf("%d Kubernetes Events with reason %s about %s, want at most one", n, reason, event)
		}
	}
}

// calls are those to PipelineRuns whose name begins so, through the controller's proxy.
func (w *world) calls(verb, prefix string) []cluster.Call {
	var found []cluster.Call
	for _, call := range w.controller().Proxy.Calls() {
		if call.Resource == "pipelineruns" && call.Verb == verb && strings.HasPrefix(call.Name, prefix) {
			found = append(found, call)
		}
	}
	return found
}

// eventOf waits for the GitEvent of a commit and until it satisfies a condition.
func (w *world) eventOf(sha, what string, ok func(*v1alpha1.GitEvent) error) *v1alpha1.GitEvent {
	w.t.Helper()
	var event *v1alpha1.GitEvent
	w.eventually(soon, what, func() error {
		for _, found := range w.events() {
			if found.Spec.SHA == sha {
				event = &found
				return ok(event)
			}
		}
		return fmt.Errorf("there is no GitEvent of %s", sha)
	})
	return event
}

// created waits until all runs of a commit exist and returns its event.
func (w *world) created(sha string) *v1alpha1.GitEvent {
	w.t.Helper()
	return w.eventOf(sha, "every PipelineRun is created and recorded", func(event *v1alpha1.GitEvent) error {
		for _, run := range event.Status.Runs {
			if run.UID == "" {
				return fmt.Errorf("%s is not", run.Name)
			}
		}
		if len(event.Status.Runs) == 0 {
			return fmt.Errorf("none is planned: %v", event.Status.Waits)
		}
		return nil
	})
}

// settles waits until the commit's event is settled.
func (w *world) settles(sha string, limit time.Duration) {
	w.t.Helper()
	w.eventually(limit, "the event is settled", func() error {
		for _, event := range w.events() {
			if event.Spec.SHA == sha && !event.Settled() {
				return fmt.Errorf("it waits: %v", event.Status.Waits)
			}
		}
		return nil
	})
}

// release lets held runs go on.
func (w *world) release(event *v1alpha1.GitEvent) {
	w.t.Helper()
	for _, run := range event.Status.Runs {
		w.must(w.Cluster.Release(w.ctx, run.Namespace, run.Name))
	}
}

// run reads a PipelineRun.
func (w *world) run(name string) *pipelinev1.PipelineRun {
	w.t.Helper()
	found, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	return found
}

// carries is nil when a run has what the Git service gave its check: on GitHub the check run's id,
// on GitLab the id of the status' pipeline, which is no label.
func (w *world) carries(run string, check check) error {
	found, key, id := w.run(run), pipelinesascode.CheckRunID, check.ID
	pipeline, _, isStatus := strings.Cut(check.ID, "/")
	if isStatus {
		key, id = pipelinesascode.GitLabPipelineID, pipeline
	}
	if found.Annotations[key] != id || found.Labels[key] != id && !isStatus {
		return fmt.Errorf("PipelineRun %s has %s %q and %q, want %q", run, key, found.Annotations[key], found.Labels[key], id)
	}
	return nil
}

// patched requires that a run carries that and that it is over.
func (w *world) patched(name string, check check) {
	w.t.Helper()
	if err := w.carries(name, check); err != nil {
		w.t.Error(err)
	}
	found, key := w.run(name), pipelinesascode.State
	if found.Annotations[key] != pipelinesascode.StateCompleted || found.Labels[key] != pipelinesascode.StateCompleted {
		w.t.Errorf("PipelineRun %s is %q and %q, want %q", name, found.Annotations[key], found.Labels[key], pipelinesascode.StateCompleted)
	}
}

// accepted are the writes of a check that the forge took, in the order they took effect.
func (w *world) accepted(sha, name string) []write {
	var applied []write
	for _, write := range w.writes(sha, name) {
		if write.Applied {
			applied = append(applied, write)
		}
	}
	return applied
}

// oneCheck requires that the commit has exactly one check run of that name and that nothing was
// written to it once it was completed.
func (w *world) oneCheck(sha, name string) {
	w.t.Helper()
	n := 0
	for _, check := range w.git.checks(sha) {
		if check.Name == name {
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("%d check runs %q, want 1", n, name)
	}
	completed := false
	for _, write := range w.writes(sha, name) {
		if completed && write.Status != "completed" {
			w.t.Errorf("write %d reopens check %q after it was completed: %v", write.N, name, write.Body)
		}
		completed = completed || write.Applied && write.Status == "completed"
	}
}

// postedOnce requires that one check was asked for, whatever was answered.
func (w *world) postedOnce(sha string) {
	w.t.Helper()
	n := 0
	for _, write := range w.writes(sha, "") {
		if write.Creates {
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("%d checks were posted, want 1: one without an answer is looked up, not repeated", n)
	}
}

// succeeded is the Succeeded condition of a run.
func succeeded(run *pipelinev1.PipelineRun) corev1.ConditionStatus {
	for _, condition := range run.Status.Conditions {
		if condition.Type == "Succeeded" {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

// hit waits until a fault at the forge, or a rule of a proxy, got n calls.
func (w *world) hit(fault interface{ Hits() int }, n int) {
	w.t.Helper()
	w.eventually(soon, fmt.Sprintf("the fault is met %d times", n), func() error {
		if hits := fault.Hits(); hits < n {
			return fmt.Errorf("%d times", hits)
		}
		return nil
	})
}

// ended waits until a run is over and returns its Succeeded condition.
func (w *world) ended(run v1alpha1.Run) cluster.Condition {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	condition, err := w.Cluster.WaitRun(ctx, run.Namespace, run.Name)
	w.must(err)
	return condition
}

// containsAll reports whether a text has all the words.
func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
