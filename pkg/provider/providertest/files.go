// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func testFiles(t *testing.T, open func(*testing.T) Env) {
	t.Run("files come sorted, from below, only YAML, as they are", func(t *testing.T) {
		w := open(t)
		sha := w.Service.Commit("main", map[string]string{
			".tekton/b.yaml": "b", ".tekton/a.yml": "a", ".tekton/sub/c.yaml": "c\xff", ".tekton/README.md": "no",
			".tekton/yaml": "no", "tekton/x.yaml": "no", "x.yaml": "no",
		})
		w.Service.Commit("main", map[string]string{".tekton/later.yaml": "later"})
		got, err := connect(t, w).Files(t.Context(), sha, ".tekton")
		want := []git.File{
			{Path: ".tekton/a.yml", Data: []byte("a")}, {Path: ".tekton/b.yaml", Data: []byte("b")},
			{Path: ".tekton/sub/c.yaml", Data: []byte("c\xff")},
		}
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(want, got))
		}
	})
	t.Run("a directory that is not there is empty", func(t *testing.T) {
		w := open(t)
		sha := w.Service.Commit("main", map[string]string{"x": "y"})
		if got, err := connect(t, w).Files(t.Context(), sha, ".tekton"); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("a file in the directory's place is the author's mistake", func(t *testing.T) {
		w := open(t)
		sha := w.Service.Commit("main", map[string]string{".tekton": "y"})
		if _, err := connect(t, w).Files(t.Context(), sha, ".tekton"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v, want an Invalid fault", err)
		}
	})
	t.Run("a file that is too large is named", func(t *testing.T) {
		w := open(t)
		sha := w.Service.Commit("main",
			map[string]string{".tekton/big.yaml": strings.Repeat("x", 1<<20+1), ".tekton/ok.yaml": ""})
		_, err := connect(t, w).Files(t.Context(), sha, ".tekton")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Message, ".tekton/big.yaml") {
			t.Errorf("%v, want an Invalid fault that names the file", err)
		}
	})
	t.Run("a commit that the service does not know yet is retried", func(t *testing.T) {
		w := open(t)
		w.Service.Commit("main", map[string]string{"x": "y"})
		sha := strings.Repeat("ab", 20)
		client := connect(t, w)
		_, headErr := client.Head(t.Context(), &v1alpha1.GitEventSpec{SHA: sha, Project: w.Project})
		_, filesErr := client.Files(t.Context(), sha, ".tekton")
		_, fileErr := client.File(t.Context(), sha, "x")
		for name, err := range map[string]error{"Head": headErr, "Files": filesErr, "File": fileErr} {
			if !fault.Is(err, fault.Transient) {
				t.Errorf("%s: %v, want a Transient fault", name, err)
			}
		}
	})
}

func testFile(t *testing.T, w Env) {
	sha := w.Service.Commit("main", map[string]string{"tasks/a b+ü.yaml": "content", "big": strings.Repeat("x", 1<<20+1)})
	client := connect(t, w)
	if got, err := client.File(t.Context(), sha, "tasks/a b+ü.yaml"); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"tasks/none.yaml", "tasks", "", "/etc/passwd", "../app", "tasks/../x", "./x"} {
		_, err := client.File(t.Context(), sha, name)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Reason != "FileNotFound" {
			t.Errorf("File(%q): %v, want an Invalid fault with reason FileNotFound", name, err)
		}
	}
	if _, err := client.File(t.Context(), sha, "big"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file that is too large: %v, want an Invalid fault", err)
	}
}

// testLag: a stale replica answers 404 for what exists. That decides nothing (G7, L4): only the
// directory of the commit shows what the commit does not contain.
func testLag(t *testing.T, open func(*testing.T) Env) {
	for sentence, c := range map[string]struct {
		lags Operation
		read func(context.Context, provider.Client, string) error
		// mistake is true if the answer, once the replica is up to date, is that the author made a
		// mistake.
		mistake bool
	}{
		"a file that one does not show is retried": {
			ReadFile, func(ctx context.Context, c provider.Client, sha string) error {
				_, err := c.File(ctx, sha, "tasks/a.yaml")
				return err
			}, false},
		"a file that all do not show is the author's mistake once the directory was read": {
			ReadDirectory, func(ctx context.Context, c provider.Client, sha string) error {
				_, err := c.File(ctx, sha, "tasks/none.yaml")
				return err
			}, true},
		"a directory that one does not show is retried": {
			ReadDirectory, func(ctx context.Context, c provider.Client, sha string) error {
				_, err := c.Files(ctx, sha, "tasks")
				return err
			}, false},
		"a directory that is not there is none once the one above was read": {
			ReadDirectory, func(ctx context.Context, c provider.Client, sha string) error {
				_, err := c.Files(ctx, sha, ".tekton")
				return err
			}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := open(t)
			sha := w.Service.Commit("main", map[string]string{"tasks/a.yaml": "content"})
			client := connect(t, w)
			w.Service.Fail(c.lags, NotFound, 2)
			for range 2 {
				err := c.read(t.Context(), client, sha)
				if !fault.Is(err, fault.Transient) || fault.Of(err).Reason != fault.ReasonCommitUnknown {
					t.Fatalf("%v, want a Transient fault with reason %s", err, fault.ReasonCommitUnknown)
				}
			}
			if err := c.read(t.Context(), client, sha); fault.Is(err, fault.Invalid) != c.mistake || err != nil && !c.mistake {
				t.Errorf("once the replica has caught up: %v", err)
			}
		})
	}
}

func testFileAt(t *testing.T, w Env) {
	w.Service.Commit("main", map[string]string{"tasks/a b.yaml": "content", "big": strings.Repeat("x", 1<<20+1)})
	client := connect(t, w)
	got, err := client.FileAt(t.Context(), w.FileURL("main", "tasks/a b.yaml"))
	if err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	elsewhere := strings.Replace(w.FileURL("main", "tasks/a b.yaml"), "://", "://evil.example/", 1)
	for _, address := range []string{
		w.FileURL("main", "none"), w.FileURL("none", "big"), w.FileURL("main", "tasks"), w.BaseURL, w.Project.URL, elsewhere,
		"", "://", "x",
	} {
		if got, err := client.FileAt(t.Context(), address); got != nil || !fault.Is(err, fault.Ignored) {
			t.Errorf("FileAt(%q): %q, %v, want an Ignored fault", address, got, err)
		}
	}
	if _, err := client.FileAt(t.Context(), w.FileURL("main", "big")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file that is too large: %v, want an Invalid fault", err)
	}
	w.Service.Fail(ReadFile, Unavailable, 0)
	if _, err := client.FileAt(t.Context(), w.FileURL("main", "tasks/a b.yaml")); !fault.Is(err, fault.Transient) {
		t.Errorf("an outage: %v, want a Transient fault", err)
	}
}

func testChanged(t *testing.T, w Env) {
	w.Service.Commit("main", map[string]string{"old": "1", "kept": "2"})
	files := map[string]string{"old": "changed"}
	for i := range 250 {
		files[fmt.Sprintf("new/%03d", i)] = fmt.Sprint(i)
	}
	w.Service.Commit("many-files", files)
	got, err := connect(t, w).Changed(t.Context(), w.Service.PullRequest("many-files", "dev"))
	if err != nil || len(got.Added) != 250 || len(got.Modified) != 1 || len(got.Deleted) != 0 || got.Truncated {
		t.Errorf("%d added, %+v, %v", len(got.Added), got, err)
	}
}
