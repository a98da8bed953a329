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

// B15: a Git host accepts connections and never answers, and 500 of its events wait (150 in make
// test). Events of another host are run and reported as usual, and the waiting events make no
// calls to the API server. Once the first host answers again, each of its events is processed
// once. Only every fiftieth starts a run, because the test's Tekton needs longer for a run than
// the controller for an event.
func TestHungHostDelaysNoOtherHost(t *testing.T) {
	t.Parallel()
	const withRun, pushes = 50, 5
	backlog := amount(150, 500)
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	hung := env.onOtherGitLab(t, env.ci, "lab")
	release := make(chan struct{})
	answers := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answers)
	hang := hung.git.Inject(forge.Fault{Do: forge.Hold(release)})
	waiting := hung.pushMany(backlog, withRun)
	env.must(hang.Wait(env.ctx, 1))
	const line = "plumbline_gitevent_turns_waiting{"
	env.eventually(soon, "they stand in a line", func() error {
		if n := env.metric(env.controller(), line); n < backlog-20 {
			return fmt.Errorf("%v do", n)
		}
		return nil
	})
	calls := env.countEventCalls()
	for i := range pushes {
		sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("normal", "push"), "i": strconv.Itoa(i)})
		env.awaitCheck(sha, checkName("normal"), "success", soon)
		if open := hung.countUnsettled(); open != backlog {
			t.Fatalf("%d events of the hung host wait, want all %d", open, backlog)
		}
	}
	// A few events lose their slot meanwhile, because calls time out: four at first, fewer later.
	asked := calls()
	if t.Logf("%d calls were made for %d events that wait", asked, backlog); asked >= backlog {
		t.Error("they are too many")
	}
	hang.Remove()
	answers()
	env.eventually(workedOff, "every event is settled", func() error {
		if open := env.countUnsettled() + hung.countUnsettled(); open > 0 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
	became := map[v1alpha1.Disposition]int{}
	for _, event := range env.events() {
		became[event.Status.Disposition]++
	}
	runs := backlog/withRun + pushes
	env.requireRunCount(runs)
	equal(t, "events with runs", became[v1alpha1.DispositionRuns], runs)
	equal(t, "ignored events", became[v1alpha1.DispositionIgnored], backlog+pushes-runs)
	for _, sha := range waiting {
		hung.awaitCheck(sha, checkName("waits"), "success", soon)
		hung.requireOneCheck(sha, checkName("waits"))
	}
	if n := env.metric(env.controller(), line); n != 0 {
		t.Errorf("%v events stand in lines at the end", n)
	}
	for _, side := range []*environment{env, hung} {
		env.must(joinViolations(side.evidence().Never()))
	}
}

// onOtherGitLab returns the same installation with a repository of a namespace on another GitLab.
func (env *environment) onOtherGitLab(t *testing.T, namespace, name string) *environment {
	t.Helper()
	g := &onGitLab{GitLab: gitlab.New(gitlab.Options{}), forks: map[string]gitlab.Project{}, heads: map[int64]string{}}
	env.must(g.setUp())
	t.Cleanup(func() { _ = g.Close() })
	other := *env
	other.git, other.ci = g, namespace
	other.createRepository(namespace, name)
	other.awaitClaimed()
	return &other
}

// pushMany delivers n pushes to as many branches, and returns the commits of those that start a
// run: one of withRun.
func (env *environment) pushMany(n, withRun int) []string {
	env.t.Helper()
	definition := strings.Replace(pipeline("waits", "push"), "[main]", "[topic-*]", 1)
	var shas []string
	var clients errgroup.Group
	clients.SetLimit(4)
	for i := range n {
		branch := fmt.Sprintf("other-%03d", i)
		if i%withRun == 0 {
			branch = fmt.Sprintf("topic-%03d", i)
		}
		sha := env.git.commit(branch, forge.Change{
			Files: map[string]string{".tekton/push.yaml": definition, "i": branch}, Message: branch,
		})
		if i%withRun == 0 {
			shas = append(shas, sha)
		}
		d := env.git.pushed("refs/heads/" + branch)
		clients.Go(func() error {
			status, body, err := env.git.deliver(env.ctx, env.receivers[0].URL, d)
			if err == nil && status != http.StatusAccepted {
				err = fmt.Errorf("answered %d %s", status, body)
			}
			return err
		})
	}
	env.must(clients.Wait())
	return shas
}

// countUnsettled counts the unsettled events of the environment's Git service.
func (env *environment) countUnsettled() int {
	n := 0
	for _, event := range env.events() {
		if strings.Contains(event.Spec.Project.URL, strings.TrimPrefix(env.git.url(), "http")) &&
			event.Status.Phase != v1alpha1.PhaseSettled {
			n++
		}
	}
	return n
}

// countEventCalls returns a function that counts the controllers' calls from now on about the
// events of now.
func (env *environment) countEventCalls() func() int {
	env.t.Helper()
	names := map[string]bool{}
	for _, event := range env.events() {
		names[event.Name] = true
	}
	log, err := os.Open(shared.cluster.AuditLog())
	env.must(err)
	env.t.Cleanup(func() { _ = log.Close() })
	env.must(errOf(log.Seek(0, io.SeekEnd)))
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	n := 0
	return func() int {
		env.t.Helper()
		for lines.Scan() {
			var event auditEvent
			if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef == nil {
				continue // the last line may be cut
			}
			if ref := event.ObjectRef; strings.HasSuffix(event.User.Username, ":plumbline-controller") &&
				ref.Resource == "gitevents" && ref.Namespace == env.Namespace && names[ref.Name] {
				n++
			}
		}
		env.must(lines.Err())
		return n
	}
}
