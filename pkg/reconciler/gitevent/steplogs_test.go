// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	fakerest "k8s.io/client-go/rest/fake"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/status"
)

// The fake client's log of every container.
const fakeLog = "fake logs"

// logsAnswer is a client for logs whose lists of pods may hang or fail.
type logsAnswer struct {
	corev1client.CoreV1Interface
	mu   sync.Mutex
	pods func(ctx context.Context, run string) error
	text func(container string) string // instead of fakeLog
}

func (l *logsAnswer) Pods(namespace string) corev1client.PodInterface {
	return podsAnswer{l.CoreV1Interface.Pods(namespace), l}
}

func (l *logsAnswer) set(pods func(ctx context.Context, run string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods = pods
}

type podsAnswer struct {
	corev1client.PodInterface
	logs *logsAnswer
}

func (p podsAnswer) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	p.logs.mu.Lock()
	answer := p.logs.pods
	p.logs.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, strings.TrimPrefix(o.LabelSelector, pipeline.PipelineRunLabelKey+"=")); err != nil {
			return nil, err
		}
	}
	return p.PodInterface.List(ctx, o)
}

func (p podsAnswer) GetLogs(pod string, o *corev1.PodLogOptions) *rest.Request {
	if p.logs.text == nil {
		return p.PodInterface.GetLogs(pod, o)
	}
	answer := func(*http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(p.logs.text(o.Container)))
		return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
	}
	client := &fakerest.RESTClient{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(), Client: fakerest.CreateHTTPClient(answer),
	}
	return client.Request()
}

// hang returns when the request is given up.
func hang(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// failSteps adds a TaskRun with a failed step, and its pod, to each PipelineRun, and ends these.
func (w *env) failSteps(steps ...string) {
	w.t.Helper()
	if len(steps) == 0 {
		steps = []string{"test"}
	}
	controlledBy := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Controller: new(true), UID: uid, Kind: "X", Name: "x", APIVersion: "x/v1"}}
	}
	for _, run := range w.runs() {
		names := map[string]string{pipeline.PipelineRunLabelKey: run.Name, pipeline.PipelineTaskLabelKey: "unit"}
		taskRun := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, Name: run.Name + "-unit", UID: types.UID("uid-unit-" + run.Name), Labels: names,
			OwnerReferences: controlledBy(run.UID),
		}}
		taskRun.Status.PodName = taskRun.Name + "-pod"
		taskRun.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "False", Reason: "Failed"})
		for _, step := range steps {
			taskRun.Status.Steps = append(taskRun.Status.Steps, pipelinev1.StepState{
				Name: step, Container: "step-" + step,
				ContainerState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			})
		}
		w.must(w.tekton.Tracker().Add(taskRun))
		w.must(w.kube.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, Name: taskRun.Status.PodName, Labels: names, OwnerReferences: controlledBy(taskRun.UID),
		}}))
	}
	w.uncounted(func() *Reconciler { w.finishRuns(corev1.ConditionFalse); return nil })
}

// failing returns an env whose runs have just failed, and a client for their logs. wakes gets a
// message at each wake-up.
func failing(
	t *testing.T,
	pods func(context.Context, string) error,
	pipelines ...string,
) (w *env, logs *logsAnswer, wakes chan struct{}) {
	t.Helper()
	w = newEnv(t)
	for _, name := range pipelines {
		w.git.files = append(w.git.files, helloFile(name))
	}
	logs, wakes = &logsAnswer{CoreV1Interface: w.kube.CoreV1(), pods: pods}, make(chan struct{}, 100)
	w.logs = logs
	w.woken = func(_ string, after time.Duration) {
		if after == 0 {
			wakes <- struct{}{}
		}
	}
	_, _ = w.reconcile()
	w.failSteps()
	return w, logs, wakes
}

// check returns the check of a pipeline as the Git service has it.
func (w *env) check(pipeline string) status.Check {
	w.t.Helper()
	for _, c := range w.git.checks {
		if strings.HasSuffix(c.Name, " / "+pipeline) {
			return c
		}
	}
	w.t.Fatalf("no check of %s: %v", pipeline, w.git.checks)
	return status.Check{}
}

func TestCheckHasTheLogOfAFailedStep(t *testing.T) {
	t.Parallel()
	w, _, _ := failing(t, nil, "hello")
	before := len(w.git.writes)
	_, _ = w.reconcile()
	c := w.check("hello")
	if c.Conclusion != status.Failure || !strings.Contains(c.Text, fakeLog) || c.LogLine != fakeLog {
		t.Errorf("%+v", c)
	}
	if n := len(w.git.writes) - before; n != 1 {
		t.Errorf("the conclusion and the log took %d reports, want 1", n)
	}
}

func TestSettingTurnsLogsOff(t *testing.T) {
	t.Parallel()
	w, logs, _ := failing(t, nil, "hello")
	w.settings = map[string]string{"error-log-snippet": "false"}
	logs.set(func(context.Context, string) error { t.Error("pods are listed"); return nil })
	for range 3 {
		_, _ = w.reconcile()
	}
	if c := w.check("hello"); c.Conclusion != status.Failure || c.Log != "" || !w.event().Settled() {
		t.Errorf("settled %v, %+v", w.event().Settled(), c)
	}
}

// The verdict is reported although the log hangs; the check gets the log when it arrives. The event
// is not settled before, also not by another process.
func TestVerdictDoesNotWaitForLogs(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"by the same process": false, "by another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answered := make(chan struct{})
				w, logs, wakes := failing(t, func(ctx context.Context, _ string) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-answered:
						return nil
					}
				}, "hello")
				began := time.Now()
				_, _ = w.reconcile()
				first := w.check("hello")
				if first.Conclusion != status.Failure || !strings.Contains(first.Text, "not available yet") {
					t.Fatalf("%+v", first)
				}
				if took := time.Since(began); took >= 2*time.Second {
					t.Errorf("the verdict took %s", took)
				}
				began = time.Now()
				_, _ = w.reconcile()
				if took := time.Since(began); took > 0 || w.event().Settled() {
					t.Errorf("another reconcile waits for %s; settled: %v", took, w.event().Settled())
				}
				if killed {
					w.alive.steps.Logs.Clear()
					w.kill()
					logs.set(nil)
				} else {
					close(answered)
					<-wakes
				}
				for range 3 {
					_, _ = w.reconcile()
				}
				last := w.check("hello")
				if last.Conclusion != first.Conclusion || last.Title != first.Title || !strings.Contains(last.Text, fakeLog) ||
					len(w.git.checks) != 1 {
					t.Errorf("%+v, %d checks", last, len(w.git.checks))
				}
				if !w.event().Settled() {
					t.Errorf("not settled: %+v", w.event().Status)
				}
			})
		})
	}
}

// After a minute without an answer the check says so, and the event settles.
func TestLogsAreGivenUp(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	for name, test := range map[string]struct {
		pods func(context.Context, string) error
		want string
	}{
		"it hangs":     {hang, "did not return the log within a minute"},
		"it fails":     {func(context.Context, string) error { return apierrors.NewInternalError(nil) }, "within a minute"},
		"is forbidden": {func(context.Context, string) error { return forbidden }, "may not read logs in namespace " + tenant},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _, wakes := failing(t, test.pods, "hello")
				began := time.Now()
				_, _ = w.reconcile()
				if w.check("hello").Conclusion != status.Failure {
					t.Fatalf("%+v", w.check("hello"))
				}
				if !w.event().Settled() {
					<-wakes
					if waited := time.Since(began); waited > 61*time.Second {
						t.Errorf("given up after %s", waited)
					}
					_, _ = w.reconcile()
				}
				if c := w.check("hello"); c.Conclusion != status.Failure || !strings.Contains(c.Text, test.want) {
					t.Errorf("%q does not say %q", c.Text, test.want)
				}
				_, _ = w.reconcile()
				if !w.event().Settled() {
					t.Errorf("not settled: %+v", w.event().Status)
				}
			})
		})
	}
}
