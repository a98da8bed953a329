// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// concluded is an event of a pull request whose runs have these outcomes: "lint=Failed". A run
// without an outcome is not finished.
func concluded(seconds int, sha string, runs ...string) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pull-", seconds)}}
	e.Spec.PullRequest, e.Spec.HappenedAt = &v1alpha1.PullRequest{Number: 3}, at(seconds)
	e.Status.Disposition, e.Status.Plan = v1alpha1.DispositionRuns, &v1alpha1.Plan{HeadSHA: sha}
	for _, run := range runs {
		pipeline, outcome, _ := strings.Cut(run, "=")
		r := v1alpha1.Run{Pipeline: pipeline}
		if outcome != "" {
			r.Result = &v1alpha1.Result{Outcome: v1alpha1.Outcome(outcome)}
		}
		e.Status.Runs = append(e.Status.Runs, r)
	}
	return e
}

func TestFailures(t *testing.T) {
	t.Parallel()
	caused := concluded(1, commit, "unit=Failed", "lint=Succeeded", "deploy=Cancelled")
	caused.Status.Runs[0].Result.Verdict = v1alpha1.VerdictAuthor
	caused.Status.Runs[0].Result.Cause = "step test of task unit exited with code 1"
	hostile := concluded(1, commit, "evil=Failed")
	hostile.Status.Runs[0].Pipeline = "x | `y`\n/close @all <img src=x>"
	const next = "fedcba9876543210fedcba9876543210fedcba98"
	for name, events := range map[string][]*v1alpha1.GitEvent{
		"failures":          {caused},
		"failures-retested": {concluded(2, commit, "unit=Succeeded"), concluded(1, commit, "unit=Failed", "lint=Failed")},
		"failures-fixed":    {concluded(2, next, "unit=Succeeded"), caused},
		"failures-running":  {concluded(2, next, "unit"), caused}, // the newest commit has no results yet
		"failures-hostile":  {hostile},
	} {
		golden(t, name, Failures(events))
	}
}

// The comment fits into what GitHub allows, however many pipelines have failed.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var runs []string
	for i := range 250 {
		runs = append(runs, fmt.Sprintf("%d%s=Failed", i, strings.Repeat("<", 300)))
	}
	got := Failures([]*v1alpha1.GitEvent{concluded(1, commit, runs...)})
	if n := utf8.RuneCountInString(got); n > 65_536 || !strings.Contains(got, "And 210 more.") {
		t.Errorf("%d characters: %.300s", n, got)
	}
}

// An event counts when a run has failed, or when all are finished.
func TestConcludedEventsHaveResults(t *testing.T) {
	t.Parallel()
	for runs, want := range map[string]bool{
		"":                        false,
		"a=Succeeded":             true,
		"a=Succeeded,b":           false,
		"a=Failed,b":              true,
		"a=Skipped":               false,
		"a=Succeeded,b=Cancelled": true,
	} {
		if got := Concluded(
			concluded(1, commit, strings.FieldsFunc(runs, func(r rune) bool { return r == ',' })...),
		); got != want {
			t.Errorf("%q: %t", runs, got)
		}
	}
	push := concluded(1, commit, "a=Failed")
	push.Spec.PullRequest = nil
	if Concluded(push) {
		t.Error("a push counts")
	}
}
