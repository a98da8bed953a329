// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// SIGTERM while the note is posted that tells of a run where a fork takes no status. There is one, and it ends with the
// verdict: also when the post lands after the next controller has taken over and has posted its own.
func TestTerminatedWhileANoteIsPosted(t *testing.T) {
	t.Parallel()
	for _, lands := range []string{"while-draining", "without-an-answer", "after-the-takeover"} {
		t.Run(lands, func(t *testing.T) {
			t.Parallel()
			w, first := newPairOn(t, gitLab)
			w.git.grant("writer", "write")
			w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request", held)}})
			number, sha := w.forkPull("writer")
			w.git.closeFork("writer", false)
			answer := make(chan struct{})
			do := forge.Land(answer)
			if lands == "without-an-answer" {
				do = forge.ApplyThenHold(nil)
			}
			posts := w.git.inject(writeComment, forge.Fault{Count: 1, Do: do})
			w.deliver(w.opened(number), http.StatusAccepted)
			w.hit(posts, 1)
			w.drains(first, func() {
				switch lands {
				case "while-draining":
					close(answer)
				case "after-the-takeover":
					w.checkReaches(sha, checkName("pr"), "in_progress", takeover)
					close(answer)
					w.eventually(soon, "both notes are there", func() error {
						if n := len(w.git.checks(sha)); n != 2 {
							return fmt.Errorf("there are %d", n)
						}
						return nil
					})
				}
			})
			w.checkReaches(sha, checkName("pr"), "in_progress", takeover)
			w.release(w.created(sha))
			w.endsOnce(sha, "pr")
			w.oneCheck(sha, checkName("pr"))
		})
	}
}

// drains tells a controller to end, does what happens once it begins nothing new, and requires that it ends within its
// grace period.
func (w *world) drains(p *installation.Process, meanwhile func()) {
	w.t.Helper()
	w.must(p.Terminate())
	w.eventually(soon, "the controller drains", func() error { return w.released(p) })
	meanwhile()
	w.ends(p)
}
