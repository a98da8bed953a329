// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// oneFile returns n pipelines in files of 100.
func oneFile(runs int, annotations ...string) []git.File {
	var files []git.File
	for i := range runs {
		if i%100 == 0 {
			files = append(files, git.File{Path: fmt.Sprintf(".tekton/f%d.yaml", i/100)})
		}
		file := &files[len(files)-1]
		file.Data = append(append(file.Data, "---\n"...), annotated(fmt.Sprintf("p%d", i), annotations...).Data...)
	}
	return files
}

// wantOneCheck requires that the event is settled with one failed check and without a run.
func (w *env) wantOneCheck(words string) {
	w.t.Helper()
	if !w.event().Settled() || len(w.runs()) != 0 || len(w.git.checks) != 1 {
		w.t.Fatalf("settled %t, %d runs, %d checks, want it settled with one check", w.event().Settled(), len(w.runs()),
			len(w.git.checks))
	}
	if check := w.git.checks["1"]; check.Conclusion != status.Failure || !strings.HasSuffix(check.Name, " / .tekton") ||
		!strings.Contains(check.Text, words) {
		w.t.Errorf("the check %s says %s: %s", check.Name, check.Conclusion, check.Text)
	}
}

func TestTooManyPipelinesAreReportedInOneCheck(t *testing.T) {
	t.Parallel()
	t.Run("too many pipelines are selected", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, oneFile(v1alpha1.MaxRuns+1)...)
		w.git.files = append(w.git.files, annotated("docs", "on-label: bug"))
		w.settle(corev1.ConditionTrue)
		w.wantOneCheck(
			"251 pipelines in .tekton are for this event, and one event starts at most 250: none of them is started.")
	})
	t.Run("too many are defined", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, oneFile(1001, "on-label: bug")...)
		w.settle(corev1.ConditionTrue)
		w.wantOneCheck(".tekton holds 1001 PipelineRuns, at most 1000 are read: none of them is started.")
	})
	t.Run("their paths and names are too long", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t)
		for i := range 400 {
			file := annotated(fmt.Sprintf("p%d", i), "on-label: bug")
			file.Path = ".tekton/" + strings.Repeat("directory/", 30) + file.Path
			w.git.files = append(w.git.files, file)
		}
		w.settle(corev1.ConditionTrue)
		w.wantOneCheck("the paths and names of the 400 PipelineRuns in .tekton take ")
	})
	t.Run("a name is too long once its variables are replaced", func(t *testing.T) {
		t.Parallel()
		file := helloFile("hello")
		file.Data = []byte(strings.Replace(string(file.Data), "name: hello", "name: '{{ long }}'", 1))
		w := newEnv(t, file)
		w.git.files[0].Data = []byte(strings.Replace(string(file.Data), "{{ long }}", strings.Repeat("{{ revision }}", 7), 1))
		w.settle(corev1.ConditionTrue)
		if check := w.git.checks["1"]; check.Conclusion != status.Failure ||
			!strings.Contains(check.Text, "metadata.name is longer than 253 bytes") || len(w.runs()) != 0 {
			t.Errorf("%d runs, the check says %s", len(w.runs()), check.Text)
		}
	})
	t.Run("as many as it may have are no reason", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, oneFile(v1alpha1.MaxRuns)...)
		w.git.files = append(w.git.files, oneFile(1000-v1alpha1.MaxRuns, "on-label: bug")...)
		for i := range w.git.files {
			w.git.files[i].Path = fmt.Sprintf(".tekton/%d.yaml", i)
			if i >= 3 {
				w.git.files[i].Data = bytes.ReplaceAll(w.git.files[i].Data, []byte("name: p"), []byte("name: q"))
			}
		}
		_, _ = w.reconcile()
		if n := len(w.runs()); n != v1alpha1.MaxRuns {
			t.Errorf("%d runs, want %d; plan %+v", n, v1alpha1.MaxRuns, w.event().Status.Plan.Message)
		}
	})
}

// Existing runs go on when the rest turns out to be too many.
func TestTooManyPipelinesStopNoRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, oneFile(v1alpha1.MaxRuns, "on-path-change: '**'")...)
	w.git.files = append(w.git.files, helloFile("hello"))
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	_, _ = w.reconcile()
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs, want that of hello", len(w.runs()))
	}
	w.git.changedErr, w.git.changed = nil, git.Changes{Modified: []string{"main.go"}}
	w.settle(corev1.ConditionTrue)
	got := w.conclusions()
	if len(got) != 2 || got["hello"] != status.Success || got[".tekton"] != status.Failure || len(w.runs()) != 1 {
		t.Errorf("%d runs, conclusions %v", len(w.runs()), got)
	}
}

// As many runs as one event may have, each refused or finished with a text of 40 KiB: every status
// write fits into an object, every run is reported, none is adopted again, and the event settles.
func TestHugeTextsAreStoredAndReported(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("<no> ", 8<<10)
	w := newEnv(t, oneFile(v1alpha1.MaxRuns)...)
	creates := 0
	w.tekton.PrependReactor("create", "pipelineruns", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		if creates++; creates%2 == 0 {
			return false, nil, nil
		}
		return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403,
			Reason: metav1.StatusReasonForbidden, Message: `admission webhook "policy.example" denied the request: ` + huge}}
	})
	w.own.PrependReactor("update", "gitevents", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		update, _ := action.(clienttesting.UpdateAction)
		data, err := json.Marshal(update.GetObject())
		w.must(err)
		if len(data) > 1<<20 {
			return true, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%d bytes", len(data)))
		}
		return false, nil, nil
	})
	for range 20 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
		w.uncounted(func() *Reconciler { w.endWith(huge); return nil })
		if w.event().Settled() {
			break
		}
	}
	if !w.event().Settled() || len(w.git.checks) != v1alpha1.MaxRuns ||
		w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Fatalf("settled %t, %d checks, disposition %s", w.event().Settled(), len(w.git.checks),
			w.event().Status.Disposition)
	}
	for _, check := range w.git.checks {
		if check.Conclusion != status.Failure || !strings.Contains(check.Text, "… (cut") {
			t.Fatalf("%s: %s %s", check.Name, check.Conclusion, check.Text)
		}
	}
	if writes := len(w.git.writes); writes > 2*v1alpha1.MaxRuns || creates != v1alpha1.MaxRuns {
		t.Errorf("%d reports, %d creates, want at most two and one for each run", writes, creates)
	}
}

// endWith finishes the unfinished runs with a failure and a text.
func (w *env) endWith(text string) {
	for _, run := range w.runs() {
		if !run.IsDone() {
			run.Status.SetCondition(&apis.Condition{
				Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "Failed", Message: text,
			})
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
		}
	}
}
