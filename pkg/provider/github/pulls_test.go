// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestPullsAcceptOnlyDocumentedAnswers(t *testing.T) {
	for _, body := range []string{`[{}]`, `[{"number":1}]`, `[{"state":"open"}]`, `{}`, ``,
		`[{"number":1,"state":"open","base":{"repo":{"id":REPO}}}]`,
		`[{"number":1,"state":"open","base":{"ref":"main","repo":{"id":REPO}}}]`,
	} {
		b := newBench(t)
		body = strings.ReplaceAll(body, "REPO", fmt.Sprint(b.head.Project.ID))
		b.Inject(forge.Fault{Route: forge.RouteCommitPulls, Do: forge.Answer(http.StatusOK, nil, body)})
		if got, err := b.client.Pulls(t.Context(), b.head.SHA); got != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %v, %v, want a Transient fault", body, got, err)
		}
	}
}

// Both repositories have a fork's commits: its own pull requests are not this repository's.
func TestPullsSkipOtherRepositories(t *testing.T) {
	b := newBench(t)
	b.Inject(forge.Fault{Route: forge.RouteCommitPulls,
		Do: forge.Answer(http.StatusOK, nil, `[{"number":4,"state":"open","base":{"repo":{"id":999999}}}]`)})
	if got, err := b.client.Pulls(t.Context(), b.head.SHA); len(got) != 0 || err != nil {
		t.Errorf("%v, %v, want none", got, err)
	}
}

func TestPullsReadAllPages(t *testing.T) {
	b := newBench(t)
	b.Commit("main", map[string]string{"x": "y"})
	sha := b.Commit("topic", map[string]string{"x": "z"})
	var want []git.Pull
	for i := range 130 {
		number := b.OpenPullRequest(forge.NewPull{Base: testRepo, HeadBranch: "topic", Author: "dev"})
		want = append(want, git.Pull{
			Number: int64(number), Open: true, SHA: sha, BaseRef: "main", HeadRef: "topic", HeadProjectID: b.head.Project.ID,
		})
		if i == 0 {
			b.SetBranch(testRepo, "topic", sha, "dev")
		}
	}
	got, err := b.client.Pulls(t.Context(), sha)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// A fork's pull request names the fork as its source, and 0 after it is deleted. A merged one names
// the branch that it was merged into.
func TestPullsNameSourceAndTarget(t *testing.T) {
	b := newBench(t)
	b.SetBranch(testRepo, "old", b.head.SHA, "dev")
	fork := b.CreateRepo("eve", "app", forge.RepoOptions{ForkOf: testRepo})
	theirs := b.GitHub.Commit(fork.FullName, "topic",
		forge.Change{Message: "theirs", Author: "eve", Files: map[string]string{"y": "z"}})
	number := b.OpenPullRequest(forge.NewPull{
		Base: testRepo, BaseBranch: "old", Head: fork.FullName, HeadBranch: "topic", Author: "eve",
	})
	want := git.Pull{
		Number: int64(number), Open: true, SHA: theirs, BaseRef: "old", HeadRef: "topic", HeadProjectID: fork.ID,
	}
	got, err := b.client.Pulls(t.Context(), theirs)
	if d := cmp.Diff([]git.Pull{want}, got); err != nil || d != "" {
		t.Errorf("of a fork: %v\n%s", err, d)
	}
	want.Open, want.Merged = false, true
	got, err = b.client.Pulls(t.Context(), b.MergePull(testRepo, number, "dev"))
	if d := cmp.Diff([]git.Pull{want}, got); err != nil || d != "" {
		t.Errorf("merged: %v\n%s", err, d)
	}
	b.DeleteRepo(fork.FullName)
	want.HeadProjectID = 0
	got, err = b.client.Pulls(t.Context(), theirs)
	if d := cmp.Diff([]git.Pull{want}, got); err != nil || d != "" {
		t.Errorf("of a fork that is gone: %v\n%s", err, d)
	}
}

func TestHeadReadsTheWholeMessageForASkipCommand(t *testing.T) {
	b := newBench(t)
	for message, want := range map[string]bool{"title\n\nbody [ci skip]": true, "title\n\nskip ci": false} {
		sha := b.GitHub.Commit(testRepo, "main", forge.Change{Message: message, Files: map[string]string{message: "x"}})
		head, err := b.client.Head(t.Context(), &v1alpha1.GitEventSpec{SHA: sha})
		if err != nil || head.Commit.SkipCI != want {
			t.Errorf("%q: %+v, %v, want %t", message, head, err, want)
		}
	}
}

func TestChangedRefusesEmptyAnswer(t *testing.T) {
	for route, event := range map[string]*v1alpha1.GitEventSpec{
		forge.RoutePullFiles: {PullRequest: &v1alpha1.PullRequest{Number: 1}}, forge.RouteCommit: {},
		forge.RouteCompare: {Before: shaBefore},
	} {
		b := newBench(t)
		event.SHA = b.head.SHA
		b.Inject(forge.Fault{Route: route, Do: forge.Answer(http.StatusOK, nil, "")})
		if got, err := b.client.Changed(t.Context(), event); !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %+v, %v, want a Transient fault", route, got, err)
		}
	}
}
