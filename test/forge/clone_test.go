// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCloneNeedsAccess(t *testing.T) {
	var ahead atomic.Int64
	w := newFixture(t, Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, RateLimit: 3})
	w.CreateRepo("org", "other", RepoOptions{Private: true})
	w.CreateRepo("org", "open", RepoOptions{})
	w.SetInstalledRepos(w.inst, "org/app", "org/other")
	password := func(token string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("git:"+strings.TrimPrefix(token, "token ")))
	}
	scoped := password(w.token(w.inst, map[string]any{"repository_ids": []int64{w.repo.ID}}))
	noContents := password(w.token(w.inst, map[string]any{"permissions": map[string]string{"checks": "write"}}))
	const upload = "/info/refs?service=git-upload-pack"
	check := func(name, path, auth string, want int) {
		t.Helper()
		r := w.do("GET", path, auth, nil)
		if r.Status != want || strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Basic ") != (want == 401) {
			t.Errorf("%s: got %d %s, want %d", name, r.Status, r.Body, want)
		}
	}
	check("the token clones its repository", "/org/app.git"+upload, scoped, 200)
	check("whose name may lack .git and ignores case", "/ORG/App"+upload, scoped, 200)
	check("but no other one, which is hidden", "/org/other.git"+upload, scoped, 404)
	check("as is one that does not exist", "/org/none.git"+upload, scoped, 404)
	check("a token without the permission is refused", "/org/app.git"+upload, noContents, 403)
	check("nobody is asked for a password", "/org/app.git"+upload, "", 401)
	check("also for what does not exist", "/org/none.git"+upload, "", 401)
	check("and clones what is public", "/org/open.git"+upload, "", 200)
	check("an unknown token is refused, even there", "/org/open.git"+upload, password("ghs_no"), 401)
	check("nobody pushes", "/org/app.git/info/refs?service=git-receive-pack", scoped, 403)
	ahead.Store(int64(time.Hour))
	check("an expired token is refused", "/org/app.git"+upload, scoped, 401)
}

// TestGitListsRefs has git itself read what the forge advertises.
func TestGitListsRefs(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := newFixture(t, Options{})
	empty := w.CreateRepo("org", "empty", RepoOptions{})
	home := t.TempDir()
	line := strings.Replace(w.repo.CloneURL, "://", "://git:"+strings.TrimPrefix(w.token(w.inst, nil), "token ")+"@", 1)
	must(t, os.WriteFile(filepath.Join(home, ".git-credentials"), []byte(line), 0o600))
	list := func(url string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", "-c", "credential.helper=store", "ls-remote", url)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git ls-remote %s: %v: %s", url, err, out)
		}
		return string(out)
	}
	if got, want := list(w.repo.CloneURL), w.sha+"\tHEAD\n"+w.sha+"\trefs/heads/main\n"; got != want {
		t.Errorf("git lists %q, want %q", got, want)
	}
	if got := list(empty.CloneURL); got != "" {
		t.Errorf("of an empty repository git lists %q", got)
	}
}
