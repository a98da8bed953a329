// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// replace is another installation that sees the Repository otherwise.
func (w *world) replace(message string) {
	w.Helper()
	r := w.repository("team", "app")
	r.ResourceVersion += "1" // as the API server does
	r.MarkFalse(pacv1alpha1.RepositoryCredentials, "Other", message)
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories("team").UpdateStatus(context.Background(), r, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.client.ClearActions()
}

// Two installations see the same Repositories and each has its own view of them. They do not write as fast as the API server
// answers for ever, and the Repository says why its conditions change.
func TestTwoInstallationsDoNotFightForAStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, repo("team", "app", "https://git.example/acme/app"))
	w.reconcile("team/app", "team/app")
	w.writes()
	w.told()
	wrote := 0
	for range 20 {
		w.replace("as the other sees it")
		w.reconcile("team/app")
		if slices.Contains(w.writes(), "update repositories/status") {
			wrote++
		}
		w.advance(time.Second)
	}
	contested := func(said string) bool { return strings.Contains(said, reasonContested) }
	told := w.told()
	if at := slices.IndexFunc(told, contested); wrote != maxOverwritten || at < 0 || slices.ContainsFunc(told[at+1:], contested) {
		t.Errorf("written %d times, want %d; told %q, want once that it is contested", wrote, maxOverwritten, told)
	}
	if after := w.reconcile("team/app"); after <= 0 || after > contestPause {
		t.Errorf("comes back after %v, want within %v", after, contestPause)
	}
	w.advance(contestPause)
	w.reconcile("team/app")
	w.wantCondition("team", "app", pacv1alpha1.RepositoryCredentials, "True "+reasonNoProblem)
	// What is new is written at once.
	w.replace("as the other sees it")
	w.setURL("team", "app", "not a URL")
	w.reconcile("team/app")
	w.wantCondition("team", "app", pacv1alpha1.RepositoryURL, "False "+reasonInvalidURL)
}
