// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// What a push replaces decides which files it changes.
func TestBefore(t *testing.T) {
	for name, test := range map[string]struct {
		branch string // checked out; main has two commits, topic one more
		args   []string
		// remote are the revisions that the remote's branches were at when it was asked last.
		remote map[string]string
		dirty  bool
		want   string // a revision, "" for none
	}{
		"what the remote does not have": {
			"main", []string{"--push"}, map[string]string{"main": "main~1"}, false, "main~1",
		},
		"the last commit where nothing is new": {
			"main", []string{"--push"}, map[string]string{"main": "main"}, false, "main~1",
		},
		"or what is not committed": {
			"main", []string{"--push"}, map[string]string{"main": "main"}, true, "main",
		},
		"of the default branch without a remote": {"main", []string{"--push"}, nil, false, "main~1"},
		"a new branch replaces nothing": {
			"topic", []string{"--push"}, map[string]string{"main": "main"}, false, "",
		},
		"a branch that was pushed": {
			"topic", []string{"--push"}, map[string]string{"topic": "main"}, true, "main",
		},
		"a merge, as the remote has the branch": {
			"topic", []string{"--push=main"}, map[string]string{"main": "main~1"}, false, "main~1",
		},
		"a merge, as the branch is here":        {"topic", []string{"--push=main"}, nil, false, "main"},
		"a merge to a branch that is not known": {"topic", []string{"--push=release-1"}, nil, false, ""},
		"a tag replaces nothing": {
			"main", []string{"--tag=v1"}, map[string]string{"main": "main"}, false, "",
		},
		"nor does the first commit that there ever was": {
			"first", []string{"--push=first"}, map[string]string{"first": "first"}, false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scratch.New(t, map[string]string{".tekton/a.yaml": run("a", "on-event: push")})
			repo.Git("branch", "first")
			repo.Commit("second")
			repo.Git("checkout", "--quiet", "-b", "topic")
			repo.Commit("third")
			repo.Git("checkout", "--quiet", test.branch)
			for branch, revision := range test.remote {
				repo.Git("update-ref", "refs/remotes/origin/"+branch, revision)
			}
			if test.dirty {
				repo.Write(map[string]string{"new": "x"})
			}
			want := ""
			if test.want != "" {
				want = repo.Git("rev-parse", test.want)
			}
			got := plumb(t.Context(), repo.Dir, "", append([]string{"plan", "-o=json"}, test.args...)...)
			var read struct{ Event struct{ Before string } }
			must(t, json.Unmarshal([]byte(got.out), &read))
			if read.Event.Before != want {
				t.Errorf("before is %q, want %q; exit %d: %s", read.Event.Before, want, got.code, got.said)
			}
		})
	}
}
