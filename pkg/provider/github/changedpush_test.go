// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// push is a push, and how many calls its list may take.
type push struct {
	before, after string
	want          git.Changes
	calls         int
}

// numbered returns n files below a directory.
func numbered(dir string, n int, text string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%s/%03d", dir, i)] = fmt.Sprint(text, i)
	}
	return files
}

func paths(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

// pushes are pushes of all kinds, all from the same files.
func pushes(b bench) map[string]push {
	first := b.Commit("main", map[string]string{"a": "1", "b": "2", "dir/c": "3"})
	release := b.Commit("main", map[string]string{
		"a": "released", "new": "4", "b": forge.Deleted, "dir/c": forge.Deleted, "moved/c": "3",
	})
	amended := b.ForcePush("main", first, map[string]string{"a": "amended", "other": "5"})
	same := b.ForcePush("main", first,
		map[string]string{"a": "released", "new": "4", "b": forge.Deleted, "dir/c": forge.Deleted, "moved/c": "3"})
	again := b.ForcePush("main", first, map[string]string{"b": forge.Deleted, "new": "else"})
	on := b.ForcePush("main", release, map[string]string{"more": "6"})
	apart := b.GitHub.Commit(testRepo, "main",
		forge.Change{Message: "apart", Orphan: true, Files: map[string]string{"a": "1", "lonely": "7"}})
	many := numbered("f", 310, "x")
	large := b.ForcePush("main", release, many)
	parted := b.ForcePush("main", first, map[string]string{"a": "parted"})
	return map[string]push{
		"a fast-forward": {first, release, git.Changes{
			Added: []string{"new"}, Modified: []string{"a"}, Deleted: []string{"b"}, Renamed: []string{"moved/c"},
		}, 1},
		"the same commit": {release, release, git.Changes{}, 1},
		"the branch is set back": {release, first,
			git.Changes{Added: []string{"b", "dir/c"}, Modified: []string{"a"}, Deleted: []string{"moved/c", "new"}}, 2},
		"set back by two": {on, first,
			git.Changes{Added: []string{"b", "dir/c"}, Modified: []string{"a"}, Deleted: []string{"more", "moved/c", "new"}}, 2},
		"an amended commit": {release, amended, git.Changes{
			Added: []string{"b", "dir/c", "other"}, Modified: []string{"a"}, Deleted: []string{"moved/c", "new"},
		}, 2},
		"the same files": {release, same, git.Changes{}, 2},
		"what both have changed": {release, again,
			git.Changes{Added: []string{"dir/c"}, Modified: []string{"a", "new"}, Deleted: []string{"moved/c"}}, 2},
		"histories without a common commit": {release, apart, git.Changes{
			Added: []string{"lonely"}, Modified: []string{"a"}, Deleted: []string{"moved/c", "new", "x"}}, 3},
		"a fast-forward of many files": {release, large, git.Changes{Added: paths(many)}, 3},
		"many files on one side": {large, parted, git.Changes{
			Added: []string{"b", "dir/c"}, Modified: []string{"a"}, Deleted: append(paths(many), "moved/c", "new"),
		}, 4},
	}
}

// A push changes what differs between the two trees, however the branch got from one to the other.
func TestChangedComparesTreesOfPush(t *testing.T) {
	b := newBench(t)
	all := pushes(b)
	if _, err := b.client.DefaultBranch(t.Context()); err != nil { // it mints the token
		t.Fatal(err)
	}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			calls := b.Calls()
			got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: p.after, Before: p.before})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(p.want, got); d != "" {
				t.Error(d)
			}
			if got := b.Calls() - calls; got != p.calls {
				t.Errorf("%d calls, want %d", got, p.calls)
			}
		})
	}
}

// If GitHub does not list the trees completely, the changes of both sides are joined and marked
// incomplete. If the earlier commit is gone, the head commit's own files are listed.
func TestChangedMarksTruncatedLists(t *testing.T) {
	for name, cut := range map[string]func(b bench){
		"GitHub cuts its trees": func(b bench) {
			b.Inject(forge.Fault{
				Route: forge.RouteTree, Do: forge.Answer(http.StatusOK, nil, `{"sha":"`+b.head.SHA+`","tree":[],"truncated":true}`),
			})
		},
		"the commit before is gone": func(b bench) { b.Inject(forge.Fault{Route: forge.RouteTree, Do: forge.NotFound404()}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			all := pushes(b)
			cut(b)
			for push, least := range map[string]int{"a fast-forward of many files": 300, "many files on one side": 300,
				"histories without a common commit": 2} {
				got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: all[push].after, Before: all[push].before})
				if listed := len(got.Added) + len(got.Modified) + len(got.Deleted); err != nil || !got.Truncated || listed < least {
					t.Errorf("%s: %d files, incomplete %t, %v", push, listed, got.Truncated, err)
				}
			}
			back := all["the branch is set back"]
			if got, err := b.client.Changed(t.Context(),
				&v1alpha1.GitEventSpec{SHA: back.after, Before: back.before}); err != nil || cmp.Diff(back.want, got) != "" {
				t.Errorf("what needs no tree: %+v, %v", got, err)
			}
		})
	}
}

// A replica that does not have the pushed commit yet is retried, at every call.
func TestChangedRetriesStaleReplica(t *testing.T) {
	b := newBench(t)
	all := pushes(b)
	apart := all["histories without a common commit"]
	unknown := strings.Repeat("ab", 20)
	for name, spec := range map[string]v1alpha1.GitEventSpec{
		"the commit":               {SHA: unknown, Before: apart.before},
		"the commit and the other": {SHA: unknown, Before: unknown[:38] + "ab"},
	} {
		if _, err := b.client.Changed(t.Context(), &spec); !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %v, want a retry", name, err)
		}
	}
	amended := all["an amended commit"]
	b.Inject(forge.Fault{Route: forge.RouteCompare, From: 2, Count: 1, Do: forge.NotFound404()})
	if _, err := b.client.Changed(t.Context(),
		&v1alpha1.GitEventSpec{SHA: amended.after, Before: amended.before}); !fault.Is(err, fault.Transient) {
		t.Errorf("the other direction is 404: %v, want a retry", err)
	}
}

// GitHub answers 500 each time for what takes it too long. The commit's own files are listed
// anyway.
func TestChangedReturnsRefusal(t *testing.T) {
	b := newBench(t)
	amended := pushes(b)["an amended commit"]
	number := b.OpenPullRequest(forge.NewPull{Base: testRepo, HeadBranch: "main", Author: "dev"})
	const tooLong = `{"message":"Server Error: Sorry, this diff is taking too long to generate.",
		"errors":[{"resource":"Comparison","field":"diff","code":"not_available"}]}`
	refused := forge.Answer(http.StatusInternalServerError, http.Header{"Content-Type": {"application/json"}}, tooLong)
	b.Inject(forge.Fault{Route: forge.RouteCompare, Do: refused})
	b.Inject(forge.Fault{Route: forge.RoutePullFiles, Do: refused})
	pull := &v1alpha1.PullRequest{Number: int64(number)}
	for name, spec := range map[string]v1alpha1.GitEventSpec{
		"a push":         {SHA: amended.after, Before: amended.before},
		"a pull request": {SHA: amended.after, PullRequest: pull},
	} {
		_, err := b.client.Changed(t.Context(), &spec)
		f := fault.Of(err)
		if f == nil || f.Class != fault.Transient || f.Reason != fault.ReasonGitUnavailable ||
			!strings.Contains(f.Message, "taking too long") {
			t.Errorf("%s: %+v, want GitHub's own words", name, f)
		}
	}
	got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: amended.after})
	if err != nil || len(got.Added)+len(got.Modified)+len(got.Deleted) == 0 {
		t.Errorf("the commit's own files: %+v, %v", got, err)
	}
}
