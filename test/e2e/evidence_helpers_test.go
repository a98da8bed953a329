// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

// patchFailures is the controller's counter of failed patches.
const patchFailures = "plumbline_pipelinerun_patch_failures_total"

// Annotation lines for pipeline: what the cluster plays, and pods that do not end until the test
// releases their run.
const (
	held  = cluster.HoldAnnotation + `: "true"`
	fails = cluster.ExitCodeAnnotation + `: "1"`
)

// forSubtest returns the environment for a subtest.
func (env *environment) forSubtest(t *testing.T) *environment {
	sub := *env
	sub.t = t
	return &sub
}

// controller returns the only controller.
func (env *environment) controller() *installation.Process { return env.controllers[0] }

// loggedErrors returns the errors that a process logged at error level, one a line, in their
// order.
func (env *environment) loggedErrors(p *installation.Process) []string {
	env.t.Helper()
	var found []string
	lines := bufio.NewScanner(strings.NewReader(env.processLog(p)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Severity, Level, Error string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || !strings.EqualFold(line.Severity+line.Level, "error") {
			continue
		}
		found = append(found, line.Error)
	}
	env.must(lines.Err())
	return found
}

// metric adds up the samples of a process's metrics whose lines contain all the words, less their
// sum before the environment was used.
func (env *environment) metric(p *installation.Process, words ...string) int {
	env.t.Helper()
	sum := func(page string) (sum int) {
		for _, line := range strings.Split(page, "\n") {
			if line == "" || line[0] == '#' || !containsAll(line, words...) {
				continue
			}
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			env.must(err)
			sum += int(value)
		}
		return sum
	}
	now := sum(env.metricsText(p))
	if env.pooled != nil {
		now -= sum(env.pooled.pages[p])
	}
	return now
}

// reportedReasons counts the Kubernetes Events on the Repository about one GitEvent, by reason.
func (env *environment) reportedReasons(event string) map[string]int {
	env.t.Helper()
	list, err := env.Kube.CoreV1().Events(env.ci).List(env.ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Repository"})
	env.must(err)
	reasons := map[string]int{}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Message, event) {
			reasons[list.Items[i].Reason] += int(max(1, list.Items[i].Count))
		}
	}
	return reasons
}

// awaitReported waits until the Repository has so many Kubernetes Events with a reason about one
// GitEvent.
func (env *environment) awaitReported(event, reason string, n int) {
	env.t.Helper()
	env.eventually(soon, fmt.Sprintf("the Repository has %d Kubernetes Events with reason %s", n, reason), func() error {
		if reported := env.reportedReasons(event); reported[reason] != n {
			return fmt.Errorf("those about %s are %v", event, reported)
		}
		return nil
	})
}

// requireReportedOnce requires at most one Kubernetes Event for each reason about a GitEvent, and
// for those about a PipelineRun, one for each of its two.
func (env *environment) requireReportedOnce(event string) {
	env.t.Helper()
	for reason, n := range env.reportedReasons(event) {
		if n > 1 && !strings.HasPrefix(reason, "PipelineRun") || n > 2 {
			env.t.Errorf("%d Kubernetes Events with reason %s about %s, want at most one", n, reason, event)
		}
	}
}

// runCalls returns the calls to PipelineRuns with a prefix of the name through the controller's
// proxy.
func (env *environment) runCalls(verb, prefix string) []cluster.Call {
	var found []cluster.Call
	for _, call := range env.controller().Proxy.Calls() {
		if call.Resource == "pipelineruns" && call.Verb == verb && strings.HasPrefix(call.Name, prefix) {
			found = append(found, call)
		}
	}
	return found
}

// awaitEvent waits until the GitEvent of a commit satisfies a condition.
func (env *environment) awaitEvent(sha, what string, ok func(*v1alpha1.GitEvent) error) *v1alpha1.GitEvent {
	env.t.Helper()
	var event *v1alpha1.GitEvent
	env.eventually(soon, what, func() error {
		for _, found := range env.events() {
			if found.Spec.SHA == sha {
				event = &found
				return ok(event)
			}
		}
		return fmt.Errorf("there is no GitEvent of %s", sha)
	})
	return event
}

// awaitRunsCreated waits until all runs of a commit exist and returns its event.
func (env *environment) awaitRunsCreated(sha string) *v1alpha1.GitEvent {
	env.t.Helper()
	return env.awaitEvent(sha, "every PipelineRun is created and recorded", func(event *v1alpha1.GitEvent) error {
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

// awaitSettled waits until the commit's event is settled.
func (env *environment) awaitSettled(sha string, limit time.Duration) {
	env.t.Helper()
	env.eventually(limit, "the event is settled", func() error {
		for _, event := range env.events() {
			if event.Spec.SHA == sha && !event.Settled() {
				return fmt.Errorf("it waits: %v", event.Status.Waits)
			}
		}
		return nil
	})
}

// releaseRuns lets held runs go on.
func (env *environment) releaseRuns(event *v1alpha1.GitEvent) {
	env.t.Helper()
	for _, run := range event.Status.Runs {
		env.must(env.Cluster.Release(env.ctx, run.Namespace, run.Name))
	}
}

// getRun reads a PipelineRun.
func (env *environment) getRun(name string) *pipelinev1.PipelineRun {
	env.t.Helper()
	found, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Get(env.ctx, name, metav1.GetOptions{})
	env.must(err)
	return found
}

// hasCheckID returns nil when a run has the id of its check: on GitHub the check run's id, on
// GitLab the id of the status's pipeline, which is no label.
func (env *environment) hasCheckID(run string, check check) error {
	found, key, id := env.getRun(run), pipelinesascode.CheckRunID, check.ID
	pipeline, _, isStatus := strings.Cut(check.ID, "/")
	if isStatus {
		key, id = pipelinesascode.GitLabPipelineID, pipeline
	}
	if found.Annotations[key] != id || found.Labels[key] != id && !isStatus {
		return fmt.Errorf("PipelineRun %s has %s %q and %q, want %q", run, key, found.Annotations[key], found.Labels[key], id)
	}
	return nil
}

// requirePatched requires that a run has the id of its check and the state completed.
func (env *environment) requirePatched(name string, check check) {
	env.t.Helper()
	if err := env.hasCheckID(name, check); err != nil {
		env.t.Error(err)
	}
	found, key := env.getRun(name), pipelinesascode.State
	if found.Annotations[key] != pipelinesascode.StateCompleted || found.Labels[key] != pipelinesascode.StateCompleted {
		env.t.Errorf("PipelineRun %s is %q and %q, want %q", name, found.Annotations[key], found.Labels[key],
			pipelinesascode.StateCompleted)
	}
}

// acceptedWrites returns the writes of a check that the forge accepted, in the order they took
// effect.
func (env *environment) acceptedWrites(sha, name string) []write {
	var applied []write
	for _, write := range env.checkWrites(sha, name) {
		if write.Applied {
			applied = append(applied, write)
		}
	}
	return applied
}

// requireOneCheck requires that the commit has exactly one check run of that name, and that no
// write followed its completion.
func (env *environment) requireOneCheck(sha, name string) {
	env.t.Helper()
	n := 0
	for _, check := range env.git.checks(sha) {
		if check.Name == name {
			n++
		}
	}
	if n != 1 {
		env.t.Errorf("%d check runs %q, want 1", n, name)
	}
	completed := false
	for _, write := range env.checkWrites(sha, name) {
		if completed && write.Status != "completed" {
			env.t.Errorf("write %d reopens check %q after it was completed: %v", write.N, name, write.Body)
		}
		completed = completed || write.Applied && write.Status == "completed"
	}
}

// requirePostedOnce requires one request to create a check, whatever was answered.
func (env *environment) requirePostedOnce(sha string) {
	env.t.Helper()
	n := 0
	for _, write := range env.checkWrites(sha, "") {
		if write.Creates {
			n++
		}
	}
	if n != 1 {
		env.t.Errorf("%d checks were posted, want 1: one without an answer is looked up, not repeated", n)
	}
}

// succeeded returns the status of a run's Succeeded condition.
func succeeded(run *pipelinev1.PipelineRun) corev1.ConditionStatus {
	for _, condition := range run.Status.Conditions {
		if condition.Type == "Succeeded" {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

// awaitHits waits until a fault at the forge, or a rule of a proxy, got n calls.
func (env *environment) awaitHits(fault interface{ Hits() int }, n int) {
	env.t.Helper()
	env.eventually(soon, fmt.Sprintf("the fault is met %d times", n), func() error {
		if hits := fault.Hits(); hits < n {
			return fmt.Errorf("%d times", hits)
		}
		return nil
	})
}

// awaitRunEnd waits until a run is finished and returns its Succeeded condition.
func (env *environment) awaitRunEnd(run v1alpha1.Run) cluster.Condition {
	env.t.Helper()
	ctx, cancel := context.WithTimeout(env.ctx, soon)
	defer cancel()
	condition, err := env.Cluster.WaitRun(ctx, run.Namespace, run.Name)
	env.must(err)
	return condition
}
