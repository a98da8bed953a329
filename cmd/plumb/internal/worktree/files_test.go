// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func texts(files []git.File) map[string]string {
	all := map[string]string{}
	for _, file := range files {
		all[file.Path] = string(file.Data)
	}
	return all
}

func TestFiles(t *testing.T) {
	repo := scratch.New(t, map[string]string{
		".tekton/a.yaml": "committed", ".tekton/deep/b.yml": "b", ".tekton/c d\n.yaml": "c", ".tekton/gone.yaml": "gone",
		".tekton/readme.md": "x", "other.yaml": "x", ".gitignore": ".tekton/mine.yaml\n",
	})
	if err := os.Symlink("../other.yaml", filepath.Join(repo.Dir, ".tekton/link.yaml")); err != nil {
		t.Fatal(err)
	}
	committed := repo.Commit("with a link")
	repo.Write(map[string]string{".tekton/a.yaml": "on disk", ".tekton/new.yaml": "new", ".tekton/mine.yaml": "ignored"})
	repo.Remove(".tekton/gone.yaml")
	tree := open(t, repo.Dir)
	for name, test := range map[string]struct {
		at   string
		want map[string]string
	}{
		"on disk": {OnDisk, map[string]string{
			".tekton/a.yaml": "on disk", ".tekton/deep/b.yml": "b", ".tekton/c d\n.yaml": "c", ".tekton/new.yaml": "new",
			".tekton/link.yaml": "../other.yaml"}},
		"at a commit": {committed, map[string]string{
			".tekton/a.yaml": "committed", ".tekton/deep/b.yml": "b", ".tekton/c d\n.yaml": "c", ".tekton/gone.yaml": "gone",
			".tekton/link.yaml": "../other.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := tree.Files(t.Context(), test.at, ".tekton")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, texts(files)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			for path, text := range test.want {
				if data, err := tree.File(t.Context(), test.at, path); err != nil || string(data) != text {
					t.Errorf("%s is %q, %v, want %q", path, data, err, text)
				}
			}
			for _, missing := range []string{".tekton/none.yaml", ".tekton", "../x", "/etc/passwd", ".tekton/../other.yaml"} {
				if _, err := tree.File(t.Context(), test.at, missing); !fault.Is(err, fault.Invalid) {
					t.Errorf("%s: got %v, want that it is not there", missing, err)
				}
			}
		})
	}
}

func TestFilesWithoutADirectory(t *testing.T) {
	repo := scratch.New(t, map[string]string{"a": "x"})
	tree := open(t, repo.Dir)
	for _, at := range []string{OnDisk, tree.Head.SHA} {
		if files, err := tree.Files(t.Context(), at, ".tekton"); err != nil || files != nil {
			t.Errorf("at %q: got %v, %v, want nothing", at, files, err)
		}
		if _, err := tree.Files(t.Context(), at, "a"); !fault.Is(err, fault.Invalid) {
			t.Errorf("at %q: got %v, want that a file is no directory", at, err)
		}
	}
}

// A link must not lead out of the tree, where the Git service could not follow it.
func TestFileThroughALink(t *testing.T) {
	repo := scratch.New(t, map[string]string{"tasks/a.yaml": "x"})
	if err := os.Symlink("tasks", filepath.Join(repo.Dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, repo.Dir).File(t.Context(), OnDisk, "linked/a.yaml"); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want that it is not there", err)
	}
}

func TestFilesThatAreTooLarge(t *testing.T) {
	repo := scratch.New(t, map[string]string{".tekton/a.yaml": strings.Repeat("x", provider.MaxFile+1)})
	tree := open(t, repo.Dir)
	for _, at := range []string{OnDisk, tree.Head.SHA} {
		_, listed := tree.Files(t.Context(), at, ".tekton")
		_, one := tree.File(t.Context(), at, ".tekton/a.yaml")
		for _, err := range []error{listed, one} {
			if f := fault.Of(err); f == nil || f.Reason != "FileTooLarge" {
				t.Errorf("at %q: got %v, want that it is too large", at, err)
			}
		}
	}
}

func TestWebURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/acme/app.git":                 "https://github.com/acme/app",
		"https://dev:hunter2@GitHub.com/acme/app/":        "https://github.com/acme/app",
		"http://127.0.0.1:8080/acme/app":                  "http://127.0.0.1:8080/acme/app",
		"git@github.com:acme/app.git":                     "https://github.com/acme/app",
		"github.com:acme/app":                             "https://github.com/acme/app",
		"ssh://git@gitlab.example.com:2222/group/sub/app": "https://gitlab.example.com/group/sub/app",
		"git://git.example.com/acme/app.git":              "https://git.example.com/acme/app",
		"/srv/git/app.git":                                "",
		"../app":                                          "",
		"file:///srv/git/app":                             "",
		"https://github.com/app":                          "",
		"https://dev:hunter2@%zz/acme/app":                "",
		"git@github.com:":                                 "",
	} {
		got, err := WebURL(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", address, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats a password: %v", err)
		}
	}
}

func TestURL(t *testing.T) {
	for name, test := range map[string]struct {
		prepare [][]string
		want    string
		refused string
	}{
		"origin": {want: "https://github.com/acme/app"},
		"the only one, whatever its name": {
			prepare: [][]string{{"remote", "rename", "origin", "upstream"}}, want: "https://github.com/acme/app",
		},
		"origin among others": {
			prepare: [][]string{{"remote", "add", "fork", "git@github.com:dev/app.git"}}, want: "https://github.com/acme/app",
		},
		"none": {
			prepare: [][]string{{"remote", "remove", "origin"}}, refused: "--url https://github.com/owner/name",
		},
		"several and no origin": {prepare: [][]string{
			{"remote", "rename", "origin", "a"}, {"remote", "add", "b", "git@github.com:dev/app.git"},
		},
			refused: "the remotes a, b and none called origin"},
		"a directory": {prepare: [][]string{{"remote", "set-url", "origin", "/srv/git/app.git"}},
			refused: "the remote origin is not at a Git service"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scratch.New(t, nil)
			for _, args := range test.prepare {
				repo.Git(args...)
			}
			got, err := open(t, repo.Dir).URL(t.Context())
			if got != test.want || (err == nil) != (test.refused == "") ||
				err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %q, %v, want %q or a sentence with %q", got, err, test.want, test.refused)
			}
		})
	}
}
