// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An author who made a mistake gets the reason why all runs are kept: in the decision, and in one
// warning on the Repository.
func TestInvalidMaxKeepRunsKeepsAllAndIsReported(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"abc": "not a whole number", `"-1"`: "not a whole number", `""`: "not a whole number",
		`"1000000000000"`: "more than 1000000", "5": "",
	} {
		w := newEnv(t, keepFile("hello", `"`+strings.Trim(written, `"`)+`"`))
		var told []string
		for range 4 {
			_ = w.reconcileTelling(&told)
		}
		reason := w.event().Status.Plan.Decisions[0].Reason
		if want == "" {
			if len(told) != 0 || strings.Contains(reason, "max-keep-runs") {
				t.Errorf("%s: told %q, decided %q", written, told, reason)
			}
			continue
		}
		if len(told) != 1 || !strings.Contains(told[0], "MaxKeepRuns") || !strings.Contains(told[0], want) ||
			!strings.Contains(reason, want) {
			t.Errorf("%s: told %q, decided %q", written, told, reason)
		}
	}
}

// An older version has planned the run and recorded no max-keep-runs: the default does not apply to
// it.
func TestRunOfAnOlderVersionKeepsItsNumber(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"9"`))
	w.settings = map[string]string{"default-max-keep-runs": "1"}
	w.history(3)
	for range 3 {
		_, _ = w.reconcile()
	}
	w.edit(func(e *v1alpha1.GitEvent) { e.Status.Runs[0].MaxKeepRuns = nil })
	w.settle(corev1.ConditionTrue)
	if got := w.remainingRuns(); got != "1 old-1 old-2 old-3" {
		t.Errorf("left are %q", got)
	}
}

// The secret stays with its run, with all its keys and without the revoked token. A token that was
// not minted for the run stays.
func TestSecretIsLeftToItsRun(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		w := running(t)
		secret := w.secret()
		token := string(secret.Data["git-provider-token"])
		if !own {
			delete(secret.Annotations, plumbline.TokenAnnotation)
			w.must(w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), secret, tenant))
			w.kill()
		}
		run := w.runs()[0]
		w.settle(corev1.ConditionTrue)
		got, err := w.kube.CoreV1().Secrets(tenant).Get(context.Background(), secret.Name, metav1.GetOptions{})
		w.must(err)
		want := []metav1.OwnerReference{{APIVersion: "tekton.dev/v1", Kind: "PipelineRun", Name: run.Name, UID: run.UID}}
		if diff := cmp.Diff(want, got.OwnerReferences); diff != "" {
			t.Error(diff)
		}
		for _, key := range []string{".gitconfig", ".git-credentials", "git-provider-token"} {
			if data, there := got.Data[key]; !there || key != ".gitconfig" && strings.Contains(string(data), token) == own {
				t.Errorf("minted for the run %v: %s is there %v, %q", own, key, there, data)
			}
		}
	}
}
