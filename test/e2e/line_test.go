// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// Issue 12: 300 events of one installation wait for their turn at a GitHub that hangs. They ask the API server nothing while
// they wait, what another tenant pushes to another service is run as ever, and once GitHub answers all of them are worked off,
// each once.
func TestEventsThatWaitForATurnCostNothing(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	const backlog, withRun, pushes = 300, 100, 2
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	other := w.elsewhere(t, shared.cluster.Namespace(t, "tenant"), "lab")
	release := make(chan struct{})
	answers := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answers)
	hang := w.git.Inject(forge.Fault{Do: forge.Hold(release)})
	waiting := w.pushMany(backlog, withRun)
	w.eventually(soon, "they stand in a line", func() error {
		if n := w.number(w.controller(), "plumbline_gitevent_turns_waiting{"); n < backlog-20 {
			return fmt.Errorf("%v do", n)
		}
		return nil
	})
	log, err := os.Open(shared.cluster.AuditLog())
	w.must(err)
	t.Cleanup(func() { _ = log.Close() })
	_, err = log.Seek(0, io.SeekEnd)
	w.must(err)
	for i := range pushes {
		sha, delivery := other.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		other.deliver(delivery, http.StatusAccepted)
		other.checkReaches(sha, checkName("normal"), "success", soon)
	}
	theirs := map[string]bool{}
	for _, event := range w.events() {
		theirs[event.Name] = event.Spec.Repository.Namespace == w.ci
	}
	// A few turns end meanwhile, because calls run out of their time: four at first, fewer the longer it hangs.
	if calls := w.callsAbout(log, "gitevents", theirs); calls >= backlog {
		t.Errorf("%d calls were made for %d events that wait", calls, backlog)
	}
	hang.Remove()
	answers()
	w.eventually(workedOff, "every event is settled", func() error {
		if open := w.openEvents(); open > 0 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
	for _, sha := range waiting {
		w.checkReaches(sha, checkName("waits"), "success", soon)
		w.oneCheck(sha, checkName("waits"))
	}
	if n := w.number(w.controller(), "plumbline_gitevent_turns_waiting{"); n != 0 {
		t.Errorf("%v events stand in lines at the end", n)
	}
	if runs := backlog/withRun + pushes; len(w.runs())+len(other.runs()) != runs {
		t.Errorf("%d PipelineRuns, want %d", len(w.runs())+len(other.runs()), runs)
	}
}

// callsAbout counts the controllers' calls about some objects of a kind in what was written to the audit log since.
func (w *world) callsAbout(log io.Reader, resource string, names map[string]bool) (n int) {
	w.t.Helper()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef == nil {
			continue // the last line may be cut
		}
		if ref := event.ObjectRef; strings.HasSuffix(event.User.Username, ":plumbline-controller") && ref.Resource == resource && ref.Namespace == w.Namespace && names[ref.Name] {
			n++
		}
	}
	w.must(lines.Err())
	return n
}

// elsewhere is the same installation as it serves a repository of another namespace on a GitLab of its own.
func (w *world) elsewhere(t *testing.T, namespace, name string) *world {
	t.Helper()
	g := &onGitLab{GitLab: gitlab.New(gitlab.Options{}), forks: map[string]gitlab.Project{}, heads: map[int64]string{}}
	w.must(g.begin())
	t.Cleanup(func() { _ = g.Close() })
	other := *w
	other.git, other.ci = g, namespace
	other.createRepository(namespace, name)
	other.claimed()
	return &other
}
