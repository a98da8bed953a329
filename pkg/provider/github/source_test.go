// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestFilesWalksWhatGitHubTruncates(t *testing.T) {
	f, w := openFake(t, forge.Options{TreeLimit: 5})
	files := map[string]string{}
	var want []string
	for i := range 30 {
		name := fmt.Sprintf(".tekton/%d/%02d.yaml", i%3, i)
		files[name] = name
	}
	for d := range 3 {
		for i := range 30 {
			if i%3 == d {
				want = append(want, fmt.Sprintf(".tekton/%d/%02d.yaml", d, i))
			}
		}
	}
	sha := f.Commit("main", files)
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Files(t.Context(), sha, ".tekton")
	var names []string
	for _, g := range got {
		names = append(names, g.Path)
		if string(g.Data) != g.Path {
			t.Errorf("%s holds %q", g.Path, g.Data)
		}
	}
	if err != nil || cmp.Diff(want, names) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(want, names))
	}
}

func TestFilesLimits(t *testing.T) {
	b := newBench(t)
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
	if got := b.Count(forge.RouteBlob); got != 0 {
		t.Errorf("%d blobs were read", got)
	}
}

func TestMissingFiles(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(bench)
		class   fault.Class
		reason  string
	}{
		{"a repository that was deleted and made anew", func(b bench) {
			b.DeleteRepo(testRepo)
			b.recreate()
		}, fault.Operator, "RepositoryNotInstalled"},
		{"an empty repository is waited for (G9)", func(b bench) {
			b.Inject(forge.Fault{
				Route: forge.RouteTree, Do: forge.Answer(http.StatusConflict, nil, `{"message":"Git Repository is empty."}`),
			})
		}, fault.Transient, "RepositoryEmpty"},
		{"a repository that GitHub hides (G7)", func(b bench) {
			b.Inject(forge.Fault{Route: forge.RouteTree, Do: forge.NotFound404()})
			b.Inject(forge.Fault{Route: forge.RouteRepo, Do: forge.NotFound404()})
		}, fault.Operator, "RepositoryNotReadable"},
		{"a repository that another one took the name of", func(b bench) {
			b.Inject(forge.Fault{Route: forge.RouteTree, Do: forge.NotFound404()})
			b.Inject(forge.Fault{Route: forge.RouteRepo, Do: forge.Answer(http.StatusOK, nil, `{"id":1}`)})
		}, fault.Operator, "RepositoryReplaced"},
		{"a blob that a replica does not have yet", func(b bench) {
			b.Inject(forge.Fault{Route: forge.RouteBlob, Do: forge.NotFound404(), From: 2})
		}, fault.Transient, "CommitUnknown"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.head.SHA = b.Commit("main", map[string]string{".tekton/a.yaml": "", ".tekton/b.yaml": "", ".tekton/c.yaml": "x"})
			b.Commit("main", map[string]string{".tekton/c.yaml": "y"})
			c.prepare(b)
			got, err := b.client.Files(t.Context(), b.head.SHA, ".tekton")
			if f := fault.Of(err); f == nil || f.Class != c.class || f.Reason != c.reason || got != nil {
				t.Errorf("got %v, %+v, want %s %s", got, f, c.class, c.reason)
			}
		})
	}
}

// recreate creates a repository of the same name with another id.
func (b bench) recreate() { b.CreateRepo("acme", "app", forge.RepoOptions{}) }

func TestChangedByPush(t *testing.T) {
	b := newBench(t)
	before := b.Commit("main", map[string]string{"a": "1", "b": "2", "c": "3"})
	b.Commit("main", map[string]string{"a": "changed"})
	after := b.Commit("main", map[string]string{"b": forge.Deleted, "d": "3", "c": forge.Deleted, "e": "5"})
	many := map[string]string{}
	for i := range 400 {
		many[fmt.Sprintf("f/%d", i)] = fmt.Sprint(i)
	}
	big := b.Commit("main", many)
	changed := git.Changes{Added: []string{"e"}, Modified: []string{"a"}, Deleted: []string{"b"}, Renamed: []string{"d"}}
	cases := []struct {
		name          string
		before, after string
		want          git.Changes
		added         int
	}{
		{"all commits of a push", before, after, changed, 1},
		{"a new branch: its head commit", "", after,
			git.Changes{Added: []string{"e"}, Deleted: []string{"b"}, Renamed: []string{"d"}}, 1},
		{"more than GitHub compares", after, big, git.Changes{}, 400},
		{"more than one page of a commit", "", big, git.Changes{}, 400},
		{"what was replaced is gone", strings.Repeat("ab", 20), after,
			git.Changes{Added: []string{"e"}, Deleted: []string{"b"}, Renamed: []string{"d"}, Truncated: true}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := b.client.Changed(t.Context(), &v1alpha1.GitEventSpec{SHA: c.after, Before: c.before})
			if err != nil || len(got.Added) != c.added {
				t.Fatalf("%d added, %v", len(got.Added), err)
			}
			if c.added > 1 {
				got.Added = nil
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRedirects: no token is sent to another host, and no write becomes a read that looks accepted.
func TestRedirects(t *testing.T) {
	var stranger atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stranger.Add(1) }))
	t.Cleanup(elsewhere.Close)
	b := newBench(t)
	id, err := b.client.Put(t.Context(), b.head, "", check("in_progress", ""), false)
	if err != nil {
		t.Fatal(err)
	}
	b.Inject(forge.Fault{
		Route: forge.RoutePermission, Do: forge.Answer(302, http.Header{"Location": {elsewhere.URL + "/x"}}, ""),
	})
	b.Inject(forge.Fault{Route: forge.RouteCheckUpdate,
		Do: forge.Answer(301, http.Header{"Location": {b.APIURL() + "repos/acme/app/check-runs/" + id}}, "")})
	if _, err := b.client.CanWrite(t.Context(), "dev"); !fault.Is(err, fault.Operator) {
		t.Errorf("a redirect to another host: %v, want an Operator fault", err)
	}
	if got := stranger.Load(); got != 0 {
		t.Errorf("the other host was called %d times", got)
	}
	if _, err := b.client.Put(t.Context(), b.head, id, check("completed", "success"), false); !fault.Is(err,
		fault.Operator) {
		t.Errorf("a redirected PATCH: %v, want an Operator fault", err)
	}
}

func TestFileRefusesLinkAndSubmodule(t *testing.T) {
	for _, kind := range []string{"submodule", "symlink"} {
		b := newBench(t)
		b.Inject(forge.Fault{
			Route: forge.RouteContents, Do: forge.Answer(http.StatusOK, nil, `{"type":"`+kind+`","content":"","encoding":""}`),
		})
		if _, err := b.client.File(t.Context(), b.head.SHA, "x"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want an Invalid fault", kind, err)
		}
	}
}

func TestCanWriteSkipsInvalidLogin(t *testing.T) {
	b := newBench(t)
	for _, user := range []string{"", "..", "a/b", "a?b", "a b", "[bot]", "-x"} {
		if got, err := b.client.CanWrite(t.Context(), user); got || err != nil {
			t.Errorf("%q: %t, %v", user, got, err)
		}
	}
	if got := b.Count(""); got != 0 {
		t.Errorf("%d calls were made", got)
	}
}

func TestCanWriteAcceptsOnlyDocumentedAnswers(t *testing.T) {
	for _, body := range []string{`{}`, `{"permission":"superuser"}`, `{"permission":null}`, `[]`, ``} {
		b := newBench(t)
		b.Inject(forge.Fault{Route: forge.RoutePermission, Do: forge.Answer(http.StatusOK, nil, body)})
		if got, err := b.client.CanWrite(t.Context(), "dev"); got || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %t, %v, want a Transient fault", body, got, err)
		}
	}
}

// Write access counts whatever it comes from.
func TestCanWrite(t *testing.T) {
	b := newBench(t)
	for _, role := range []string{"read", "triage", "write", "maintain", "admin"} {
		b.SetCollaborator(testRepo, role, role)
	}
	owner, _, _ := strings.Cut(testRepo, "/")
	b.SetOrgOwner(owner, "boss")
	b.SetOrgMember(owner, "member", false)
	for user, want := range map[string]bool{"read": false, "triage": false, "write": true, "maintain": true, "admin": true,
		"boss": true, "member": false} {
		if got, err := b.client.CanWrite(t.Context(), user); got != want || err != nil {
			t.Errorf("%s: %t, %v, want %t", user, got, err, want)
		}
	}
}
