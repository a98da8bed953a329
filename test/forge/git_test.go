// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSHAsMatchGit builds the same commit with git itself.
func TestSHAsMatchGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := newFixture(t, Options{})
	w.CreateRepo("org", "git", RepoOptions{})
	// A directory sorts as if its name ended in a slash: after .tekton.md.
	sha := w.Commit("org/git", "main", Change{Message: "first", Author: "alice", Files: map[string]string{
		".tekton/push.yaml": "kind: PipelineRun\n", ".tekton.md": "hello\n",
	}})
	cm := w.repos["org/git"].db[sha].Commit
	dir := t.TempDir()
	script := `set -e
git init -q .
mkdir .tekton
printf 'kind: PipelineRun\n' > .tekton/push.yaml
printf 'hello\n' > .tekton.md
git add -A
printf first | git commit-tree "$(git write-tree)"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	date := fmt.Sprintf("%d +0000", cm.When.Unix())
	cmd.Env = append(cmd.Environ(), "GIT_AUTHOR_NAME=alice", "GIT_COMMITTER_NAME=alice",
		"GIT_AUTHOR_EMAIL="+cm.Author.Email,
		"GIT_COMMITTER_EMAIL="+cm.Author.Email, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date,
		"GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != sha {
		t.Errorf("git says %s, the forge %s", got, sha)
	}
}

func TestContents(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	big := strings.Repeat("x", maxInlineContent+1)
	old := w.sha
	w.Commit("org/app", "feature/x", Change{Files: map[string]string{"big.txt": big, "README.md": Deleted}})
	get := func(path string) reply { return w.do("GET", "/api/v3/repos/org/app"+path, tok, nil) }
	file := get("/contents/.tekton/push.yaml?ref=" + old).Object(t)
	text64, err := base64.StdEncoding.DecodeString(text(file, "content"))
	if err != nil || string(text64) != "kind: PipelineRun\n" || text(file, "encoding") != "base64" ||
		file["size"] != 18.0 {
		t.Errorf("a file: %v, %v", file, err)
	}
	large := get("/contents/big.txt?ref=feature/x").Object(t)
	if text(large, "content") != "" || text(large, "encoding") != "none" || large["size"] != float64(len(big)) {
		t.Errorf("a file over 1 MB: encoding %v, size %v", large["encoding"], large["size"])
	}
	var names []string
	for _, e := range get("/contents/?ref=feature%2Fx").List(t) {
		names = append(names, text(e, "type")+" "+text(e, "path"))
	}
	if diff := cmp.Diff([]string{"dir .tekton", "file big.txt"}, names); diff != "" {
		t.Errorf("a directory (-want +got):\n%s", diff)
	}
}

func TestMissingObjects(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	for path, want := range map[string]string{
		"/contents/none":                 "404 Not Found",
		"/contents/README.md?ref=nobody": "404 No commit found for the ref nobody",
		"/branches/nobody":               "404 Branch not found",
		"/commits/nobody":                "422 No commit found for SHA: nobody",
		"/git/trees/" + zeroSHA:          "404 Not Found",
		"/git/blobs/" + w.sha:            "404 Not Found",
		"/nothing":                       "404 Not Found",
	} {
		if r := w.do("GET", "/api/v3/repos/org/app"+path, tok, nil); fmt.Sprint(r.Status, " ", r.message()) != want {
			t.Errorf("%s: got %d %q, want %s", path, r.Status, r.message(), want)
		}
	}
	w.CreateRepo("org", "empty", RepoOptions{})
	if r := w.do("GET", "/repos/org/empty/commits/main", tok, nil); r.Status != 409 ||
		r.message() != "Git Repository is empty." {
		t.Errorf("a commit of an empty repository: %d %q", r.Status, r.message())
	}
}

func TestTrees(t *testing.T) {
	w := newFixture(t, Options{TreeLimit: 3})
	tok := w.token(w.inst, nil)
	w.Commit("org/app", "feature/x", Change{Files: map[string]string{"README.md": "changed"}})
	get := func(path string) reply { return w.do("GET", "/api/v3/repos/org/app"+path, tok, nil) }
	tree := get("/git/trees/feature/x?recursive=1").Object(t)
	if n := len(tree["tree"].([]any)); n != 3 || tree["truncated"] != false {
		t.Errorf("a tree that fits: %d entries, truncated %v", n, tree["truncated"])
	}
	w.Commit("org/app", "main", Change{Files: map[string]string{"c": "3"}})
	tree = get("/git/trees/main?recursive=1").Object(t)
	if n := len(tree["tree"].([]any)); n != 3 || tree["truncated"] != true {
		t.Errorf("a tree over the limit: %d entries, truncated %v", n, tree["truncated"])
	}
	if got := text(get("/branches/feature/x").Object(t), "name"); got != "feature/x" {
		t.Errorf("a branch with a slash: %q", got)
	}
}

func TestCompare(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	base := w.sha
	w.Commit("org/app", "topic", Change{Files: map[string]string{"new": "n", "moved.md": "hello\n", "README.md": Deleted}})
	w.Commit("org/app", "main", Change{Files: map[string]string{"other": "o"}})
	r := w.do("GET", "/repos/org/app/compare/main...topic", tok, nil).Object(t)
	var files []string
	for _, f := range r["files"].([]any) {
		o := f.(map[string]any)
		files = append(files, strings.TrimSpace(text(o, "status")+" "+text(o, "filename")+" "+text(o, "previous_filename")))
	}
	if diff := cmp.Diff([]string{"renamed moved.md README.md", "added new"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if r["status"] != "diverged" || r["ahead_by"] != 1.0 || r["behind_by"] != 1.0 ||
		text(r["merge_base_commit"].(map[string]any), "sha") != base {
		t.Errorf("comparison: %v ahead %v behind %v", r["status"], r["ahead_by"], r["behind_by"])
	}
	if r := w.do("GET", "/repos/org/app/compare/main...nobody", tok, nil); r.Status != 404 {
		t.Errorf("an unknown head: %d", r.Status)
	}
}
