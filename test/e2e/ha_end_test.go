// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// asking is what is asked of the Git service for a pull request when the controller is told to end, and whether it is answered then.
type asking struct {
	user     string // who opens the pull request
	at       operation
	match    func(*http.Request) bool
	answered bool
}

// SIGTERM while the Git service is told or asked what it never is for the pushes of TestKilledAtEveryCall. The controller ends
// within its grace period, whether that is answered or not; the next one does the rest, and nothing is told twice.
func TestTerminatedWhileTheGitServiceIsAsked(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	for name, row := range map[string]asking{
		"a-comment-is-posted":              {"stranger", writeComment, saysPending, true},
		"a-comment-is-posted-unanswered":   {"stranger", writeComment, saysPending, false},
		"a-stranger-is-asked-for":          {"stranger", askPermission, about("stranger"), true},
		"changed-files-are-listed-in-vain": {"writer", listPullFiles, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachService(t, setup{receivers: 1, controllers: 1, standby: true, proxied: true}, func(t *testing.T, w *world) { isAsked(t, w, row) })
		})
	}
}

func isAsked(t *testing.T, w *world, row asking) {
	const filter = "pipelinesascode.tekton.dev/on-path-change: README"
	w.git.grant("writer", "write")
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request", filter)}})
	number, sha := w.forkPull(row.user)
	if row.at == writeComment && w.git.kind() == gitLab {
		w.git.closeFork(row.user, false) // only there the fork may take no status
	} else if row.at == writeComment {
		row.at = createCheck // GitHub shows it as a check run
	}
	answer := make(chan struct{})
	do := forge.Hold(answer)
	if !row.answered {
		do = forge.ApplyThenHold(nil)
	}
	call := w.git.inject(row.at, forge.Fault{Match: row.match, Count: 1, Do: do})
	w.deliver(w.opened(number), http.StatusAccepted)
	w.hit(call, 1)
	w.drains(w.controller(), func() {
		if row.answered {
			close(answer)
		}
	})
	w.startController(true)
	if row.user == "writer" {
		w.checkReaches(sha, checkName("pr"), "success", takeover)
		w.endsOnce(sha, "pr")
		w.oneCheck(sha, checkName("pr"))
		return
	}
	w.checkReaches(sha, application, "queued", takeover)
	w.settled(afterFault)
	if all := w.git.checks(sha); len(all) != 1 || all[0].Status != "queued" || !strings.Contains(all[0].Title, "Pending approval") {
		t.Errorf("the commit has %+v, want one check that says Pending approval", all)
	}
	w.nothingRan()
}

// SIGTERM while a command is answered, in a comment that the Git service takes while the controller drains, or takes and does not answer. There
// is one comment in the end.
func TestTerminatedWhileACommandIsAnswered(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	for name, answered := range map[string]bool{"answered": true, "unanswered": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachService(t, setup{receivers: 1, controllers: 1, standby: true, proxied: true}, func(t *testing.T, w *world) {
				w.git.grant("member", "write")
				w.git.commit("main", forge.Change{Files: map[string]string{"README": "1"}})
				w.git.commit("topic", forge.Change{Author: "member", Files: map[string]string{".tekton/build.yaml": pipeline("build", "push")}})
				number := w.git.open("", "topic", "member")
				answer := make(chan struct{})
				do := forge.Hold(answer)
				if !answered {
					do = forge.ApplyThenHold(nil)
				}
				posts := w.git.inject(writeComment, forge.Fault{Count: 1, Do: do})
				command := w.commands(number, "member", "/test biuld")
				w.deliver(command, http.StatusAccepted)
				w.hit(posts, 1)
				w.drains(w.controller(), func() {
					if answered {
						close(answer)
					}
				})
				w.startController(true)
				w.eventually(takeover+takeover, "the command is answered", func() error {
					if event := w.recordOf(command); !event.Settled() {
						return fmt.Errorf("%+v, waits %v", event.Status.Reply, event.Status.Waits)
					}
					return nil
				})
				w.answered(number, 0, "no pipeline called biuld")
			})
		})
	}
}

// saysPending matches what tells that somebody has to approve.
func saysPending(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	return err == nil && bytes.Contains(body, []byte("Pending approval"))
}

// SIGTERM while the note is posted that tells of a run where a fork takes no status. There is one, and it ends with the
// verdict: also when the post lands after the next controller has taken over and has posted its own.
func TestTerminatedWhileANoteIsPosted(t *testing.T) {
	onlyInTestAll(t)
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
