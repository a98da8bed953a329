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

// validated is an event of a pull request whose files have these errors.
func validated(seconds int, errors ...string) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pull-", seconds)}}
	e.Spec.PullRequest, e.Spec.HappenedAt = &v1alpha1.PullRequest{Number: 3}, at(seconds)
	e.Status.Disposition = v1alpha1.DispositionRuns
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: commit, DefinitionSHA: commit}
	for i, says := range errors {
		name, file := fmt.Sprint("p", i), fmt.Sprintf(".tekton/%d.yaml", i)
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Pipeline: name, Refused: &v1alpha1.Refusal{Message: says}})
		e.Status.Plan.Decisions = append(e.Status.Plan.Decisions, v1alpha1.Decision{File: file, Reason: says})
	}
	return e
}

func TestValidation(t *testing.T) {
	t.Parallel()
	evil := "x | y\n/test `z` <!-- plumbline validation --> @all #12 [a](https://evil) <img src=x> \u202e```\n\n/close"
	renamed := validated(4, "no")
	renamed.Status.Plan.Decisions[0].Reason, renamed.Status.Plan.Decisions[0].Pipeline = "another text", "p0"
	for name, events := range map[string][]*v1alpha1.GitEvent{
		"validation-errors":  {validated(1), validated(2, ".tekton/0.yaml:3: did not find expected key", "bad task")},
		"validation-fixed":   {validated(2), validated(1, "bad task")},
		"validation-hostile": {validated(1, evil)},
		"validation-by-name": {renamed},
	} {
		golden(t, name, Validation(events))
	}
}

// The comment fits into what GitHub allows, however many errors there are.
func TestValidationIsBounded(t *testing.T) {
	t.Parallel()
	got := Validation(
		[]*v1alpha1.GitEvent{validated(1, strings.Split(strings.Repeat(strings.Repeat("<", 2000)+"|", 249), "|")...)},
	)
	if n := utf8.RuneCountInString(got); n > 200_000 || !strings.Contains(got, "And 210 more.") {
		t.Errorf("%d characters: %.300s", n, got)
	}
}

func TestValidatedEventsHaveReadAllFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*v1alpha1.GitEvent)
		want   bool
	}{
		"a push to the pull request":     {func(*v1alpha1.GitEvent) {}, true},
		"nothing matches":                {withDisposition(v1alpha1.DispositionIgnored), true},
		"a push":                         {func(e *v1alpha1.GitEvent) { e.Spec.PullRequest = nil }, false},
		"no plan":                        {func(e *v1alpha1.GitEvent) { e.Status.Plan = nil }, false},
		"waits for approval":             {withDisposition(v1alpha1.DispositionPending), false},
		"was not read":                   {func(e *v1alpha1.GitEvent) { e.Status.Plan.DefinitionSHA = "" }, false},
		"a command":                      {func(e *v1alpha1.GitEvent) { e.Spec.Comment = &v1alpha1.Comment{} }, false},
		"a re-run":                       {func(e *v1alpha1.GitEvent) { e.Spec.Rerun = &v1alpha1.Rerun{} }, false},
		"an approval":                    {approves, true},
		"a command that finds an error":  {refusedCommand, true},
		"an undecided pipeline is left":  {undecided, false},
		"an approval by another comment": {func(e *v1alpha1.GitEvent) { approves(e); e.Status.Plan.Approval.Event = "other" }, false},
	} {
		e := validated(1)
		test.change(e)
		if got := Validated(e); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func approves(e *v1alpha1.GitEvent) {
	e.Spec.Comment, e.Status.Plan.Approval = &v1alpha1.Comment{}, &v1alpha1.Approval{Event: e.Name}
}

func refusedCommand(e *v1alpha1.GitEvent) {
	e.Spec.Comment = &v1alpha1.Comment{}
	e.Status.Runs = []v1alpha1.Run{{Refused: &v1alpha1.Refusal{Message: "no"}}}
}

func undecided(e *v1alpha1.GitEvent) { e.Status.Plan.Decisions = []v1alpha1.Decision{{Open: true}} }

func withDisposition(how v1alpha1.Disposition) func(*v1alpha1.GitEvent) {
	return func(e *v1alpha1.GitEvent) { e.Status.Disposition = how }
}
