// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestFilesComeFromAllPages(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	files := map[string]string{}
	var want []string
	for i := range 250 {
		name := fmt.Sprintf(".tekton/%03d/a b.yaml", i)
		files[name], want = name, append(want, name)
		files[fmt.Sprintf("%03d", i)] = "many at the root: the directory is not on the first page"
	}
	got, err := b.client.Files(t.Context(), b.Commit("main", files), ".tekton")
	var names []string
	for _, f := range got {
		names = append(names, string(f.Data))
	}
	if d := cmp.Diff(want, names); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestFilesLimits(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	files := map[string]string{}
	for i := range provider.MaxFiles + 1 {
		files[fmt.Sprintf(".tekton/%04d.yaml", i)] = ""
	}
	for i := range 17 {
		files[fmt.Sprintf("big/%d.yml", i)] = strings.Repeat("x", provider.MaxFile)
	}
	sha := b.Commit("main", files)
	for dir, reason := range map[string]string{".tekton": "TooManyFiles", "big": "FilesTooLarge"} {
		if _, err := b.client.Files(t.Context(), sha, dir); fault.Of(err) == nil || fault.Of(err).Class != fault.Invalid ||
			fault.Of(err).Reason != reason {
			t.Errorf("%s: %v, want Invalid %s", dir, err, reason)
		}
	}
}

// A fork's commits are read from the target, which needs no membership in the fork.
func TestFilesOfForkAreReadFromTarget(t *testing.T) {
	b, _ := forked(t, forgelab.Private, "")
	sha := b.GitLab.Commit(testFork, "main",
		forgelab.Change{Author: "stranger", Files: map[string]string{".tekton/a.yaml": "theirs"}})
	got, err := b.client.Files(t.Context(), sha, ".tekton")
	if err != nil || len(got) != 1 || string(got[0].Data) != "theirs" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMissingFiles(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(bench)
		class   fault.Class
		reason  string
	}{
		{"a project that GitLab hides (L4)", func(b bench) { b.DeleteProject(testProject) }, fault.Operator,
			"RepositoryNotReadable"},
		{"a project that another one took the path of", func(b bench) {
			b.DeleteProject(testProject)
			b.CreateProject(testProject, forgelab.ProjectOptions{Visibility: forgelab.Public})
		}, fault.Operator, "RepositoryReplaced"},
		{"a file that a replica does not have yet", func(b bench) {
			b.Inject(forgelab.Fault{Route: forgelab.RouteFile, Do: forgelab.NotFound404(), From: 2})
		}, fault.Transient, "CommitUnknown"},
		{"a file that is not what its digest says", func(b bench) {
			b.Inject(forgelab.Fault{Route: forgelab.RouteFile,
				Do: forge.Answer(http.StatusOK, nil, `{"size":1,"encoding":"base64","content":"eA==","content_sha256":"00"}`)})
		}, fault.Transient, "BadAnswer"},
		{"a list that is none", func(b bench) {
			b.Inject(forgelab.Fault{Route: forgelab.RouteTree, Do: forge.Answer(http.StatusOK, nil, "null")})
		}, fault.Transient, "BadAnswer"},
		{"a list without an end", func(b bench) {
			b.Inject(forgelab.Fault{
				Route: forgelab.RouteTree, Do: forge.Answer(http.StatusOK, http.Header{"X-Next-Page": {"2"}}, "[]"),
			})
		}, fault.Operator, "TooMany"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			sha := b.Commit("main", map[string]string{".tekton/a.yaml": "x", ".tekton/b.yaml": "y"})
			c.prepare(b)
			got, err := b.client.Files(t.Context(), sha, ".tekton")
			if f := fault.Of(err); f == nil || f.Class != c.class || f.Reason != c.reason || got != nil {
				t.Errorf("got %v, %+v, want %s %s", got, f, c.class, c.reason)
			}
		})
	}
}

func TestFileFarTooLargeIsInvalid(t *testing.T) {
	f, w := openFake(t, forgelab.Options{})
	sha := f.Commit("main", map[string]string{"x": strings.Repeat("x", 1<<16)})
	client, err := New(Options{Limits: provider.Limits{Answer: 1 << 15}}).Connect(t.Context(), w.BaseURL, w.Project,
		w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.File(t.Context(), sha, "x"); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v, want an Invalid fault", err)
	}
}

func TestEmptyProjectIsRetried(t *testing.T) {
	f, w := openFake(t, forgelab.Options{})
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.DefaultBranch(t.Context()); got != "" || !fault.Is(err, fault.Transient) {
		t.Errorf("%q, %v, want a Transient fault", got, err)
	}
	f.Commit("main", map[string]string{"x": "y"})
	for code, class := range map[int]fault.Class{404: fault.Transient, 500: fault.Transient, 403: fault.Operator} {
		f.Inject(forgelab.Fault{Route: forgelab.RouteBranch, Count: 1, Do: forge.Answer(code, nil, `{"message":"x"}`)})
		if got, err := client.DefaultBranch(t.Context()); got != "" || !fault.Is(err, class) {
			t.Errorf("%d: %q, %v, want %s", code, got, err, class)
		}
	}
	f.Inject(forgelab.Fault{Route: forgelab.RouteBranch, Count: 1, Do: forge.Answer(200, nil, `{"commit":{"id":"main"}}`)})
	if got, err := client.DefaultBranch(t.Context()); got != "" || !fault.Is(err, fault.Transient) {
		t.Errorf("no commit: %q, %v", got, err)
	}
}

func TestChangedByPush(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	before := b.Commit("main", map[string]string{"a": "1", "b": "b"})
	b.Commit("main", map[string]string{"new": "new"})
	after := b.Commit("main", map[string]string{"a": "2", "b": forgelab.Deleted})
	gone := strings.Repeat("ab", 20)
	cases := []struct {
		name   string
		before string
		want   git.Changes
	}{
		{"all commits of a push count", before,
			git.Changes{Added: []string{"new"}, Modified: []string{"a"}, Deleted: []string{"b"}}},
		{"a new branch tells of its head", "", git.Changes{Modified: []string{"a"}, Deleted: []string{"b"}}},
		{"what a forced push replaced may be gone", gone,
			git.Changes{Modified: []string{"a"}, Deleted: []string{"b"}, Truncated: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: after, Before: c.before})
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
	b.Inject(forgelab.Fault{
		Route: forgelab.RouteCompare, Do: forge.Answer(200, nil, `{"diffs":[{"new_path":"a"}],"compare_timeout":true}`),
	})
	if got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: after, Before: before}); err != nil ||
		!got.Truncated {
		t.Errorf("%+v, %v, want it truncated", got, err)
	}
}

// Files that a merge request does not list, a comparison may list; if neither does, the result is
// marked.
func TestChangedComparesLargeMergeRequest(t *testing.T) {
	b := newBench(t, forgelab.Options{DiffLimit: 3})
	b.Commit("topic", map[string]string{"a": "1", "b": "1", "c": "1"})
	event := b.PullRequest("topic", "dev")
	expect := func(why string, calls int, want git.Changes) {
		t.Helper()
		before := b.Count(forgelab.RouteCompare)
		got, err := b.client.Changed(t.Context(), event)
		if d := cmp.Diff(want, got); err != nil || d != "" || b.Count(forgelab.RouteCompare)-before != calls {
			t.Errorf("%s: %v, %d comparisons\n%s", why, err, b.Count(forgelab.RouteCompare)-before, d)
		}
	}
	three := []string{"a", "b", "c"}
	expect("as many as are listed", 0, git.Changes{Added: three})
	b.Commit("topic", map[string]string{"d": "1"})
	expect("a comparison that is limited as well", 1, git.Changes{Added: three, Truncated: true})
	b.Inject(forgelab.Fault{Route: forgelab.RouteCompare, Count: 1, Do: forgelab.NotFound404()})
	expect("commits that cannot be compared", 1, git.Changes{Added: three, Truncated: true})
	b.Inject(forgelab.Fault{Route: forgelab.RouteCompare, Count: 1,
		Do: forge.Answer(200, nil, `{"diffs":[{"new_path":"a"},{"new_path":"d","new_file":true}],"compare_timeout":false}`)})
	expect("a comparison without a limit", 1, git.Changes{Modified: []string{"a"}, Added: []string{"d"}})
	b.Inject(forgelab.Fault{Route: forgelab.RouteCompare, Count: 1, Do: forge.ServerError502HTML()})
	if got, err := b.client.Changed(t.Context(), event); !fault.Is(err, fault.Transient) {
		t.Errorf("an outage: %+v, %v, want a Transient fault", got, err)
	}
}

func TestChangedWaitsForPreparation(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"a": "1"})
	event := b.PullRequest("topic", "dev")
	b.Inject(forgelab.Fault{Route: forgelab.RouteMergeRequest, Count: 1,
		Do: forge.Answer(200, nil, `{"iid":1,"changes_count":null,"diff_refs":null}`)})
	if got, err := b.client.Changed(t.Context(), event); !fault.Is(err, fault.Transient) {
		t.Errorf("%+v, %v, want a Transient fault", got, err)
	}
	for _, route := range []string{forgelab.RouteMergeRequest, forgelab.RouteMRDiffs, forgelab.RouteCommitDiff,
		forgelab.RouteCompare} {
		for _, body := range []string{"", "{}", "null", "<html>"} {
			b.Inject(forgelab.Fault{Route: route, Count: 1, Do: forge.Answer(200, nil, body)})
			spec := *event
			switch route {
			case forgelab.RouteCommitDiff:
				spec.PullRequest, spec.Before = nil, ""
			case forgelab.RouteCompare:
				spec.PullRequest, spec.Before = nil, b.head.SHA
			}
			if got, err := b.client.Changed(t.Context(), &spec); !fault.Is(err, fault.Transient) {
				t.Errorf("%s, %q: %+v, %v, want a Transient fault", route, body, got, err)
			}
		}
	}
}

func TestPullsAcceptOnlyDocumentedAnswers(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	for _, body := range []string{`[{}]`, `[{"iid":1}]`, `[{"state":"opened"}]`, `{}`, ``, `null`,
		fmt.Sprintf(`[{"iid":1,"state":"opened","target_branch":"main","target_project_id":%d}]`, b.head.Project.ID),
		fmt.Sprintf(`[{"iid":1,"state":"opened","source_branch":"topic","target_project_id":%d}]`, b.head.Project.ID),
	} {
		b.Inject(forgelab.Fault{Route: forgelab.RouteCommitMRs, Count: 1, Do: forge.Answer(200, nil, body)})
		if got, err := b.client.Pulls(t.Context(), b.head.SHA); got != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %v, %v, want a Transient fault", body, got, err)
		}
	}
	b.Inject(forgelab.Fault{Route: forgelab.RouteCommitMRs, Count: 1,
		Do: forge.Answer(200, nil, `[{"iid":4,"state":"opened","target_project_id":999999}]`)})
	if got, err := b.client.Pulls(t.Context(), b.head.SHA); len(got) != 0 || err != nil {
		t.Errorf("another project's: %v, %v, want none", got, err)
	}
}
