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

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// B15: a Git host accepts connections and never answers, and 500 events of it wait (150 in make
// test). What another host delivers meanwhile is run and reported as ever, and those that wait ask
// the API server nothing. Once the first one answers again, each of its events is worked off, once.
// Every fiftieth of them starts a run, because a run takes the test's own Tekton longer than an
// event takes the controller.
func TestB15AHungHostDelaysNoOtherHostsEvents(t *testing.T) {
	t.Parallel()
	const withRun, pushes = 50, 5
	backlog := amount(150, 500)
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	hung := w.elsewhere(t, w.ci, "lab")
	release := make(chan struct{})
	answers := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answers)
	hang := hung.git.Inject(forge.Fault{Do: forge.Hold(release)})
	waiting := hung.pushMany(backlog, withRun)
	w.must(hang.Wait(w.ctx, 1))
	const line = "plumbline_gitevent_turns_waiting{"
	w.eventually(soon, "they stand in a line", func() error {
		if n := w.number(w.controller(), line); n < backlog-20 {
			return fmt.Errorf("%v do", n)
		}
		return nil
	})
	calls := w.callsAboutEvents()
	for i := range pushes {
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("normal"), "success", soon)
		if open := hung.openEvents(); open != backlog {
			t.Fatalf("%d events of the hung host wait, want all %d", open, backlog)
		}
	}
	// A few turns end meanwhile, because calls run out of their time: four at first, fewer the
	// longer it hangs.
	asked := calls()
	if t.Logf("%d calls were made for %d events that wait", asked, backlog); asked >= backlog {
		t.Error("they are too many")
	}
	hang.Remove()
	answers()
	w.eventually(workedOff, "every event is settled", func() error {
		if open := w.openEvents() + hung.openEvents(); open > 0 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
	became := map[v1alpha1.Disposition]int{}
	for _, event := range w.events() {
		became[event.Status.Disposition]++
	}
	if runs := backlog/withRun + pushes; len(w.runs()) != runs || became[v1alpha1.DispositionRuns] != runs || became[v1alpha1.DispositionIgnored] != backlog+pushes-runs {
		t.Errorf("%d PipelineRuns of events that became %v, want %d of %d events", len(w.runs()), became, runs, backlog+pushes)
	}
	for _, sha := range waiting {
		hung.checkReaches(sha, checkName("waits"), "success", soon)
		hung.oneCheck(sha, checkName("waits"))
	}
	if n := w.number(w.controller(), line); n != 0 {
		t.Errorf("%v events stand in lines at the end", n)
	}
	for _, side := range []*world{w, hung} {
		w.must(joined(side.everything().Never()))
	}
}

// elsewhere is the same installation as it serves a repository of a namespace on a GitLab of its
// own.
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

// pushMany delivers n pushes to as many branches, and returns the commits of those that start a
// run: one of so many.
func (w *world) pushMany(n, withRun int) []string {
	w.t.Helper()
	definition := strings.Replace(pipeline("waits", "push"), "[main]", "[topic-*]", 1)
	var shas []string
	var clients errgroup.Group
	clients.SetLimit(4)
	for i := range n {
		branch := fmt.Sprintf("other-%03d", i)
		if i%withRun == 0 {
			branch = fmt.Sprintf("topic-%03d", i)
		}
		sha := w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/push.yaml": definition, "i": branch}, Message: branch})
		if i%withRun == 0 {
			shas = append(shas, sha)
		}
		d := w.git.pushed("refs/heads/" + branch)
		clients.Go(func() error {
			status, body, err := w.git.deliver(w.ctx, w.receivers[0].URL, d)
			if err == nil && status != http.StatusAccepted {
				err = fmt.Errorf("answered %d %s", status, body)
			}
			return err
		})
	}
	w.must(clients.Wait())
	return shas
}

// openEvents counts the events of the world's Git service that are not settled.
func (w *world) openEvents() int {
	n := 0
	for _, event := range w.events() {
		if strings.Contains(event.Spec.Project.URL, strings.TrimPrefix(w.git.url(), "http")) && event.Status.Phase != v1alpha1.PhaseSettled {
			n++
		}
	}
	return n
}

// callsAboutEvents counts, whenever it is called, the controllers' calls since now about the events
// of now.
func (w *world) callsAboutEvents() func() int {
	w.t.Helper()
	names := map[string]bool{}
	for _, event := range w.events() {
		names[event.Name] = true
	}
	log, err := os.Open(shared.cluster.AuditLog())
	w.must(err)
	w.t.Cleanup(func() { _ = log.Close() })
	_, err = log.Seek(0, io.SeekEnd)
	w.must(err)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	n := 0
	return func() int {
		w.t.Helper()
		for lines.Scan() {
			var event auditEvent
			if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef == nil {
				continue // the last line may be cut
			}
			if ref := event.ObjectRef; strings.HasSuffix(event.User.Username, ":plumbline-controller") && ref.Resource == "gitevents" && ref.Namespace == w.Namespace && names[ref.Name] {
				n++
			}
		}
		w.must(lines.Err())
		return n
	}
}
