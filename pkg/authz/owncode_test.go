// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The table of docs/github.md says which runs are of the repository's own code. Each row is an
// event here.
func TestOwnCodeIsTheTableOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/github.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "| run for | own code |")
	section, _, _ = strings.Cut(section, "\n\n")
	events := ownCodeEvents()
	rows := regexp.MustCompile(`(?m)^\| (.+?) \| (yes|no) \|`).FindAllStringSubmatch(section, -1)
	for _, row := range rows {
		event, known := events[row[1]]
		if !known {
			t.Errorf("no event for the row %q", row[1])
			continue
		}
		delete(events, row[1])
		if got := OwnCode(event); got != (row[2] == "yes") {
			t.Errorf("%s: own code: %t, the page says %s", row[1], got, row[2])
		}
	}
	for name := range events {
		t.Errorf("the page has no row %q", name)
	}
}

// ownCodeEvents returns one planned event for each row of the page.
func ownCodeEvents() map[string]*v1alpha1.GitEvent {
	const own, fork = 1, 2
	pull := func(head int64) *v1alpha1.PullRequest { return &v1alpha1.PullRequest{Number: 3, HeadProjectID: head} }
	comment, rerun := &v1alpha1.Comment{ID: 9}, &v1alpha1.Rerun{AppID: 1}
	event := func(spec v1alpha1.GitEventSpec, plan v1alpha1.Plan) *v1alpha1.GitEvent {
		spec.Project.ID = own
		e := &v1alpha1.GitEvent{Spec: spec}
		e.Status.Plan = &plan
		return e
	}
	return map[string]*v1alpha1.GitEvent{
		"a push, a tag, a merge queue, a request to `/incoming`": event(
			v1alpha1.GitEventSpec{BaseRef: "refs/heads/main"},
			v1alpha1.Plan{},
		),
		"a pull request from a branch of the repository": event(
			v1alpha1.GitEventSpec{PullRequest: pull(own)},
			v1alpha1.Plan{},
		),
		"a pull request from a fork, also a writer's": event(
			v1alpha1.GitEventSpec{PullRequest: pull(fork)},
			v1alpha1.Plan{},
		),
		"a commit that needed an approval, whatever starts its run": event(
			v1alpha1.GitEventSpec{Comment: comment}, v1alpha1.Plan{Approval: &v1alpha1.Approval{By: "writer"}, OwnHead: true}),
		"a command, a comment or a re-run button on a pull request from a branch of the repository": event(
			v1alpha1.GitEventSpec{Comment: comment}, v1alpha1.Plan{OwnHead: true}),
		"a command, a comment or a re-run button on a pull request from a fork": event(
			v1alpha1.GitEventSpec{Rerun: rerun}, v1alpha1.Plan{}),
		"a command on a commit, a re-run button of a push": event(
			v1alpha1.GitEventSpec{Comment: comment}, v1alpha1.Plan{Ref: "refs/heads/main"}),
	}
}

func TestOwnIsACommitOfTheRepositoryWithoutApproval(t *testing.T) {
	t.Parallel()
	own, fork := &v1alpha1.PullRequest{HeadProjectID: 1}, &v1alpha1.PullRequest{HeadProjectID: 2}
	push := v1alpha1.GitEventSpec{BaseRef: "refs/heads/main"}
	for name, test := range map[string]struct {
		spec     v1alpha1.GitEventSpec
		approval *v1alpha1.Approval
		want     bool
	}{
		"a push":              {spec: push, want: true},
		"a branch":            {spec: v1alpha1.GitEventSpec{PullRequest: own}, want: true},
		"a fork":              {spec: v1alpha1.GitEventSpec{PullRequest: fork}},
		"a deleted fork":      {spec: v1alpha1.GitEventSpec{PullRequest: &v1alpha1.PullRequest{}}},
		"an approved branch":  {spec: v1alpha1.GitEventSpec{PullRequest: own}, approval: &v1alpha1.Approval{}},
		"a re-run of unknown": {spec: v1alpha1.GitEventSpec{Rerun: &v1alpha1.Rerun{}}},
		"a merge group": {
			spec: v1alpha1.GitEventSpec{Trigger: v1alpha1.TriggerMergeGroup, HeadRef: "gh-readonly-queue/main/pr-1-x"},
			want: true,
		},
	} {
		test.spec.Project.ID = 1
		if got := Own(&test.spec, test.approval); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
