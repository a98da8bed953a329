// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A build takes minutes, so mistakes are reported first.
func TestReleaseRefusesBeforeItBuilds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ version, before, says string }{
		"no version":                  {"", "", "VERSION: is not set"},
		"a version without v":         {"1.2.3", "", "is not a version such as v0.1.0"},
		"a version with spaces":       {"v1.2.3 x", "", "is not a version such as v0.1.0"},
		"a dirty tree":                {"v1.2.3", "touch new.txt", "?? new.txt"},
		"a tag of another commit":     {"v1.2.3", "git tag v1.2.3 && git commit -q --allow-empty -m second", "the tag v1.2.3 is another commit"},
		"a version without a section": {"v1.2.4-rc.1", "", "no section for v1.2.4-rc.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a clone")
			script, err := os.ReadFile("release.sh")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "hack"), 0o700); err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(dir, "hack", "release.sh")
			if err := os.WriteFile(copied, script, 0o700); err != nil { // #nosec G306 -- a script
				t.Fatal(err)
			}
			setup := "set -e\ngit init -q && echo '## [1.2.3]' >CHANGELOG.md && git add . && git commit -q -m first\n" + test.before
			for _, command := range []string{setup, "hack/release.sh"} {
				run := exec.CommandContext(t.Context(), "bash", "-c", command) // #nosec G204 -- the script under test
				run.Dir = dir
				run.Env = append(os.Environ(), "VERSION="+test.version, "GIT_CONFIG_GLOBAL=/dev/null",
					"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
				out, err := run.CombinedOutput()
				switch refused := command != setup; {
				case refused && (err == nil || !strings.Contains(string(out), test.says)):
					t.Errorf("it says %s (%v), want %q", out, err, test.says)
				case !refused && err != nil:
					t.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
