// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// names returns the check names that the Git service was ever sent.
func (w *env) names() []string {
	names := map[string]bool{}
	for _, check := range w.git.writes {
		names[check.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// A check keeps the name that it was started with after application-name changes. A GitLab knows a
// check by its name, and the first check would stay running.
func TestChangedApplicationNameAppliesToNewChecks(t *testing.T) {
	t.Parallel()
	rename := func(w *env) { w.settings = map[string]string{"application-name": "New CI"} }
	t.Run("a run's check is finished under its own, and nothing is sent for the change alone", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.settings = map[string]string{"application-name": "Old CI"}
		for range 2 {
			_, _ = w.reconcile()
		}
		writes := len(w.git.writes)
		rename(w)
		_, _ = w.reconcile()
		if got := len(w.git.writes); got != writes {
			t.Errorf("%d more reports for the new name", got-writes)
		}
		w.settle(corev1.ConditionTrue)
		if got := w.names(); !slices.Equal(got, []string{"Old CI / hello"}) || len(w.git.checks) != 1 ||
			w.git.checks["1"].Conclusion != status.Success {
			t.Errorf("sent were %q, checks %v: want one success under the old name", got, w.git.checks)
		}
		if got := w.git.checks["1"].Summary; got != "Old CI/hello has <b>successfully</b> validated your commit." {
			t.Errorf("the check says %q", got)
		}
	})
	t.Run("a check that is not begun has the new one", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.settings = map[string]string{"application-name": "Old CI"}
		w.hook = always("update gitevents/status", errConflict)
		_, _ = w.reconcile() // nothing is recorded, so nothing is sent
		w.hook = nil
		rename(w)
		w.settle(corev1.ConditionTrue)
		if got := w.names(); !slices.Equal(got, []string{"New CI / hello"}) {
			t.Errorf("sent were %q", got)
		}
	})
	t.Run("a check that may have been sent is looked for under the name it was sent with", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.settings = map[string]string{"application-name": "Old CI"}
		w.hook = func(_ int, call string) outcome {
			return outcome{kill: call == "put check in_progress", apply: true}
		}
		_, _ = w.reconcile()
		w.hook = nil
		rename(w)
		w.settle(corev1.ConditionTrue)
		if got := w.names(); !slices.Equal(got, []string{"Old CI / hello"}) || len(w.git.checks) != 1 {
			t.Errorf("sent were %q, checks %v", got, w.git.checks)
		}
	})
	t.Run("a check that waits for approval is the one that is concluded", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.settings = map[string]string{"application-name": "Old CI"}
		w.fromFork()
		w.git.canWrite = func(string) (bool, error) { return false, nil }
		w.hook = always("delete eventpayloads", errRefused) // so that the event stays open
		_, _ = w.reconcile()
		rename(w)
		w.edit(func(e *v1alpha1.GitEvent) { e.Status.Disposition = v1alpha1.DispositionRefused })
		w.hook = nil
		w.settle(corev1.ConditionTrue)
		if got := w.names(); !slices.Equal(got, []string{"Old CI"}) || w.git.checks["1"].Conclusion != status.Cancelled {
			t.Errorf("sent were %q, checks %v", got, w.git.checks)
		}
	})
}

// An older release left the dash of a generateName out of check names. A check that it started
// keeps that name: a GitLab would show a second status, and the first would stay pending.
func TestCheckKeepsTheNameItStartedWith(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]status.Conclusion{"runs": status.Success, "is refused": status.Failure} {
		t.Run("and the pipeline "+how, func(t *testing.T) {
			t.Parallel()
			file := helloFile("hello")
			file.Data = []byte(strings.NewReplacer("name: hello\n",
				"generateName: hello-\n  labels: {x: '{{ files.all }}'}\n").Replace(string(file.Data)))
			w := newEnv(t, file)
			w.git.changedErr = fault.Transientf("GitUnavailable", "502")
			_, _ = w.reconcile()
			w.edit(func(e *v1alpha1.GitEvent) {
				e.Status.Runs[0].Pipeline = "hello"
				e.Status.Checks[0].Name = "Pipelines as Code CI / hello"
			})
			w.git.writes, w.git.changedErr = nil, nil
			if want == status.Failure {
				w.git.changedErr = fault.Invalidf("BadYAML", "no")
			}
			w.settle(corev1.ConditionTrue)
			if got := w.names(); !slices.Equal(got, []string{"Pipelines as Code CI / hello"}) ||
				w.git.checks["1"].Conclusion != want {
				t.Errorf("sent were %q, checks %v", got, w.git.checks)
			}
		})
	}
}
