// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	podtemplate "github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestReadReturnsTheLastLinesOfFailedSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	taskRun, _ := f.failed("unit", "one\ntwo\nthree\n\x1b[31mFAIL\x1b[0m\n\n")
	later, _ := f.failed("lint", "")
	taskRun.Status.CompletionTime = &metav1.Time{Time: time.Unix(1, 0)}
	later.Status.CompletionTime = &metav1.Time{Time: time.Unix(2, 0)}
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	taskRun.Status.Steps = append(taskRun.Status.Steps,
		pipelinev1.StepState{Name: "skipped", ContainerState: state, TerminationReason: "Skipped"},
		pipelinev1.StepState{Name: "continued", ContainerState: state, TerminationReason: "Continued"})
	f.update(taskRun)
	f.update(later)
	for _, reason := range []string{"TaskRunCancelled", "FailureIgnored"} {
		other, _ := f.failed(strings.ToLower(reason), "no")
		other.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "False", Reason: reason})
		f.update(other)
	}
	foreign, pod := f.failed("foreign", "of another run")
	foreign.OwnerReferences, pod.OwnerReferences = controlledBy("another"), nil
	f.update(foreign)
	got, again := f.read()
	want := v1alpha1.RunLog{Steps: []v1alpha1.StepLog{
		{Task: "unit", Step: "test", Text: "two\nthree\nFAIL"},
		{Task: "lint", Step: "test", Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogEmpty}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || again {
		t.Errorf("again %v\n%s", again, diff)
	}
}

// places puts a reference to a Secret into each place from which a container can see it.
func places() map[string]func(*pipelinev1.TaskRun, *corev1.Pod, string) {
	env := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "a",
		}}}}
	}
	from := func(name string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}}
	}
	volume := func(name string) []corev1.Volume {
		return []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name},
		}}}
	}
	projected := func(name string) *corev1.ProjectedVolumeSource {
		return &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}}}
	}
	type p = *corev1.Pod
	type r = *pipelinev1.TaskRun
	return map[string]func(r, p, string){
		"env":            func(_ r, pod p, n string) { pod.Spec.Containers = []corev1.Container{{Env: env(n)}} },
		"envFrom":        func(_ r, pod p, n string) { pod.Spec.Containers = []corev1.Container{{EnvFrom: from(n)}} },
		"init container": func(_ r, pod p, n string) { pod.Spec.InitContainers = []corev1.Container{{Env: env(n)}} },
		"volume":         func(_ r, pod p, n string) { pod.Spec.Volumes = volume(n) },
		"projected": func(_ r, pod p, n string) {
			pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: projected(n)}}}
		},
		"debug container": func(_ r, pod p, n string) {
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: from(n)}},
			}
		},
		// in TaskRuns whose pods are gone
		"gone: workspace": func(tr r, _ p, n string) {
			tr.Spec.Workspaces = []pipelinev1.WorkspaceBinding{{Secret: &corev1.SecretVolumeSource{SecretName: n}}}
		},
		"gone: projected": func(tr r, _ p, n string) {
			tr.Spec.Workspaces = []pipelinev1.WorkspaceBinding{{Projected: projected(n)}}
		},
		"gone: step":      func(tr r, _ p, n string) { tr.Status.TaskSpec.Steps = []pipelinev1.Step{{Env: env(n)}} },
		"gone: step from": func(tr r, _ p, n string) { tr.Status.TaskSpec.Steps = []pipelinev1.Step{{EnvFrom: from(n)}} },
		"gone: sidecar": func(tr r, _ p, n string) {
			tr.Status.TaskSpec.Sidecars = []pipelinev1.Sidecar{{EnvFrom: from(n)}}
		},
		"gone: template": func(tr r, _ p, n string) {
			tr.Status.TaskSpec.StepTemplate = &pipelinev1.StepTemplate{Env: env(n)}
		},
		"gone: volume": func(tr r, _ p, n string) { tr.Status.TaskSpec.Volumes = volume(n) },
	}
}

// A step may print what another step or another task of its run could see.
func TestReadMasksWhatTheRunCouldSee(t *testing.T) {
	t.Parallel()
	for place, put := range places() {
		for _, other := range []bool{false, true} {
			f := newFixture(t)
			f.secrets["s"] = map[string][]byte{"a": []byte("canary-value"), "b": []byte("another-canary")}
			const printed = "canary-value\nanother-canary\nY2FuYXJ5LXZhbHVl\n"
			taskRun, pod := f.failed("unit", printed)
			gone := strings.HasPrefix(place, "gone: ")
			if other || gone {
				taskRun, pod = f.failed("build", "fine")
				taskRun.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "True"})
			}
			put(taskRun, pod, "s")
			if f.update(taskRun); gone {
				delete(f.pods, pod.Name)
			}
			got, again := f.read()
			if again || len(got.Steps) != 1 || strings.Contains(got.Steps[0].Text, "anary") ||
				strings.Contains(got.Steps[0].Text, "Y2Fu") ||
				!strings.Contains(got.Steps[0].Text, hidden) {
				t.Errorf("%s, another task %v: %+v, again %v", place, other, got, again)
			}
		}
	}
}

func TestReadMasksParamsAndTheCloneToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failed("unit", "param-canary token-canary")
	f.secrets["gitauth"] = map[string][]byte{"git-provider-token": []byte("token-canary")}
	with := request()
	with.Secret, with.Values = "gitauth", []string{"param-canary"}
	if got, _ := f.reader().Read(t.Context(), with); len(got.Steps) != 1 || got.Steps[0].Text != hidden+" "+hidden {
		t.Errorf("%+v", got)
	}
}

// A log is not shown if what the run could see is not known.
func TestReadShowsNoLogIfASecretCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fixture, *pipelinev1.TaskRun, *corev1.Pod)
		want   v1alpha1.MissingReason
		object string
		again  bool
	}{
		"is forbidden": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) {
			f.answer = func(path string) int { return map[bool]int{true: 403}[path == "secrets/s"] }
		}, v1alpha1.LogSecret, "Secret s", false},
		"is not answered": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) {
			f.answer = func(path string) int { return map[bool]int{true: 500}[path == "secrets/s"] }
		}, v1alpha1.LogSecret, "Secret s", true},
		"and others are forbidden": {func(f *fixture, _ *pipelinev1.TaskRun, pod *corev1.Pod) {
			f.answer = func(path string) int { return map[bool]int{true: 403}[strings.HasPrefix(path, "secrets/")] }
			for _, name := range []string{"d", "c", "a", "b"} {
				pod.Spec.Containers[0].EnvFrom = append(pod.Spec.Containers[0].EnvFrom,
					corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: name},
					}})
			}
		}, v1alpha1.LogSecret, "Secret a", false},
		"is deleted": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) { delete(f.secrets, "s") },
			v1alpha1.LogSecret, "Secret s", false},
		"is too large": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) {
			f.secrets["s"]["a"] = make([]byte, maxSecrets+1)
		}, v1alpha1.LogSecrets, "", false},
		"has changed": {func(f *fixture, _ *pipelinev1.TaskRun, pod *corev1.Pod) {
			pod.CreationTimestamp, f.managed = metav1.Unix(100, 0), changedAt(101, `{"f:data":{"f:a":{}}}`)
		}, v1alpha1.LogSecret, "Secret s, which has changed since the run began", false},
		"has changed, and its pod is gone": {func(f *fixture, taskRun *pipelinev1.TaskRun, _ *corev1.Pod) {
			other, pod := f.failed("build", "")
			other.Spec.PodTemplate = &podtemplate.Template{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "s"},
			}}}}
			other.CreationTimestamp, f.managed = metav1.Unix(100, 0), changedAt(101, `{"f:data":{"f:a":{}}}`)
			f.update(other)
			delete(f.pods, pod.Name)
			f.pods["run-unit-pod"].Spec = corev1.PodSpec{}
		}, v1alpha1.LogSecret, "Secret s, which has changed since the run began", false},
		"another pod is gone, and its ServiceAccount is another one": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) {
			other, pod := f.failed("build", "")
			other.Spec.ServiceAccountName = "deployer"
			f.update(other)
			delete(f.pods, pod.Name)
		}, v1alpha1.LogSecret, "pod run-build-pod", false},
		"another pod is gone, and its task is not known": {func(f *fixture, _ *pipelinev1.TaskRun, _ *corev1.Pod) {
			other, pod := f.failed("build", "")
			other.Status.TaskSpec = nil
			f.update(other)
			delete(f.pods, pod.Name)
		}, v1alpha1.LogSecret, "pod run-build-pod", false},
	} {
		f := newFixture(t)
		f.secrets["s"] = map[string][]byte{"a": []byte("canary-value")}
		taskRun, pod := f.failed("unit", "canary-value")
		pod.Spec.Containers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"},
		}}}}}
		test.change(f, taskRun, pod)
		got, again := f.read()
		want := v1alpha1.RunLog{Missing: &v1alpha1.MissingLog{Reason: test.want, Object: test.object}}
		if diff := cmp.Diff(want, got); diff != "" || again != test.again {
			t.Errorf("%s: again %v\n%s", name, again, diff)
		}
	}
	f := newFixture(t)
	_, pod := f.failed("unit", "text")
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "never-existed", Optional: new(true)},
	}}}
	if got, _ := f.read(); len(got.Steps) != 1 || got.Steps[0].Text != "text" {
		t.Errorf("an optional Secret that does not exist: %+v", got)
	}
}

func TestReadSaysWhyThereIsNoLog(t *testing.T) {
	t.Parallel()
	const log = "pods/run-unit-pod/log"
	gone := []v1alpha1.StepLog{{Task: "unit", Step: "test", Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogGone}}}
	later := []v1alpha1.StepLog{
		{Task: "unit", Step: "test", Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogUnavailable}},
	}
	forbidden := v1alpha1.RunLog{Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogForbidden, Object: "team"}}
	for name, test := range map[string]struct {
		path  string
		code  int
		want  v1alpha1.RunLog
		again bool
	}{
		"pods are forbidden":     {"pods", 403, forbidden, false},
		"the log is forbidden":   {log, 403, forbidden, false},
		"the log is not there":   {log, 404, v1alpha1.RunLog{Steps: gone}, false},
		"the container is not":   {log, 400, v1alpha1.RunLog{Steps: gone}, false},
		"the kubelet is not":     {log, 500, v1alpha1.RunLog{Steps: later}, true},
		"the log hangs":          {log, 408, v1alpha1.RunLog{Steps: later}, true},
		"the API server is down": {"pods", 500, v1alpha1.RunLog{Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogUnavailable}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.failed("unit", "text")
			f.answer = func(path string) int { return map[bool]int{true: test.code}[path == test.path] }
			limit := 10 * time.Second // for a busy machine
			if test.code == 408 {
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			got, again := f.reader().Read(ctx, request())
			if diff := cmp.Diff(test.want, got); diff != "" || again != test.again {
				t.Errorf("again %v\n%s", again, diff)
			}
		})
	}
	f := newFixture(t)
	_, pod := f.failed("unit", "text")
	pod.OwnerReferences = controlledBy("another TaskRun")
	if got, again := f.read(); again || len(got.Steps) != 1 || got.Steps[0].Text != "" {
		t.Errorf("the pod of another TaskRun has the name: %+v", got)
	}
	f = newFixture(t)
	f.failed("unit", "unable to retrieve container logs for containerd://0123")
	if got, again := f.read(); again || cmp.Diff(gone, got.Steps) != "" {
		t.Errorf("the runtime has removed the container: %+v", got)
	}
	f = newFixture(t)
	if got, again := f.read(); again || cmp.Diff(v1alpha1.RunLog{}, got) != "" {
		t.Errorf("the run had no task: %+v", got)
	}
	deleted := request()
	deleted.Tasks = true
	if got, again := f.reader().Read(t.Context(), deleted); again || got.Missing == nil ||
		got.Missing.Reason != v1alpha1.LogGone {
		t.Errorf("the run is gone: %+v", got)
	}
}

func TestReadReadsAllStepsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for n := range 3 {
		f.failed(fmt.Sprint("t", n), "text")
	}
	f.answer = func(path string) int { return map[bool]int{true: 408}[path == "pods/run-t0-pod/log"] }
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	got, again := f.reader().Read(ctx, request())
	if !again || texts(got) != 2 {
		t.Errorf("%+v, again %v", got, again)
	}
}
