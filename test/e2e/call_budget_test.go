// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// kubeBudget is how many calls to Kubernetes one push with one pipeline may cost the receiver and
// the controller of a quiet installation, from its delivery to its settled event: 14, and two more
// if the start of its run is reported separately from the end.
const kubeBudget = 16

// pushesCounted is how many pushes are counted together: a late call for one push is counted with
// the next.
const pushesCounted = 4

// gitBudget is the budget of calls to a Git service when the definitions have not changed. GitHub:
// pull requests of the commit 1, path of .tekton 1, the run's token 1 and its revocation 1, its
// check 2. GitLab: project and branch, which confirm the delivery, 2; merge requests of the commit
// 1; path of .tekton 1; and two reports, before each of which the commit's statuses are read, 4.
func gitBudget(k kind) int {
	if k == gitLab {
		return 8
	}
	return 6
}

// A push with one pipeline costs at most twice its budget of calls. The factor is needed because
// two changes of a run may wake the controller once or twice, and because calls are repeated on a
// slow machine.
func TestPushStaysWithinCallBudget(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.pushAndSettle(t) // the first push binds the URL, reads the definitions, and mints a token of the App
		log, from, names, git := env.openAuditAtEnd(), len(env.git.log().requests), map[string]bool{}, map[string]int{}
		for range pushesCounted {
			names[env.pushAndSettle(t)] = true
		}
		for _, request := range env.git.log().requests[from:] {
			git[request.Route]++
		}
		for _, made := range []struct {
			to     string
			calls  map[string]int
			budget int
		}{{"Kubernetes", env.countAuditCalls(log, names), kubeBudget}, {"the Git service", git, gitBudget(env.git.kind())}} {
			sum, lines := 0, ""
			for _, item := range slices.Sorted(maps.Keys(made.calls)) {
				sum += made.calls[item]
				lines += fmt.Sprintf("\n%6.2f  %s", float64(made.calls[item])/pushesCounted, item)
			}
			text := fmt.Sprintf("a push with one pipeline costs %.2f calls to %s, %d undisturbed:%s", float64(sum)/pushesCounted,
				made.to, made.budget, lines)
			if t.Log(text); sum == 0 || sum > 2*made.budget*pushesCounted {
				t.Error("too many, or none")
			}
		}
	})
}

// pushAndSettle pushes a commit with one pipeline, waits until its event is settled, and returns
// the event's name.
func (env *environment) pushAndSettle(t *testing.T) string {
	t.Helper()
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("hello"), "success", soon)
	env.awaitAllSettled(soon)
	return recordName(env.git, delivery)
}

// openAuditAtEnd opens the API server's audit log at its end.
func (env *environment) openAuditAtEnd() *os.File {
	env.t.Helper()
	log, err := os.Open(shared.cluster.AuditLog())
	env.must(err)
	env.t.Cleanup(func() { _ = log.Close() })
	env.must(errOf(log.Seek(0, io.SeekEnd)))
	return log
}

// countAuditCalls counts the calls in an audit log that the environment's processes made for the
// named events, by process, verb and resource.
func (env *environment) countAuditCalls(log io.Reader, names map[string]bool) map[string]int {
	env.t.Helper()
	items := map[string]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call struct {
			auditEvent
			UserAgent string
		}
		if json.Unmarshal(lines.Bytes(), &call) != nil {
			continue // the last line may be cut
		}
		account, ours := strings.CutPrefix(call.User.Username, "system:serviceaccount:"+env.Namespace+":plumbline-")
		if !ours || call.ObjectRef == nil || !isForEvent(call.auditEvent, call.UserAgent) {
			continue
		}
		ref := call.ObjectRef
		if account == "receiver" && call.Verb == "get" && !namesEvent(names, ref.Name) {
			continue // a rollout looks for records of the previous version
		}
		items[account+" "+strings.TrimSuffix(call.Verb+" "+ref.Resource+"/"+ref.Subresource, "/")]++
	}
	env.must(lines.Err())
	return items
}

// namesEvent reports whether a name is an event's, or that of the page with its tombstone.
func namesEvent(names map[string]bool, name string) bool {
	for event := range names {
		if name == event || name == tombstone.PageOf(event) {
			return true
		}
	}
	return false
}

// isForEvent reports whether a call is made for an event. Other calls have a constant rate,
// whatever the number of events.
func isForEvent(call auditEvent, userAgent string) bool {
	ref := call.ObjectRef
	switch {
	case call.Verb == "watch", ref.Resource == "leases":
		return false
	case call.Verb == "list": // informers and the sweep list, except for the tasks of one run
		return ref.Resource == "taskruns"
	case ref.Resource == "configmaps": // a receiver reads the copies in use every 20 s
		return false
	}
	return !strings.HasSuffix(userAgent, "/webhook-secrets") && !strings.HasSuffix(userAgent, "/deliveries") &&
		!strings.HasSuffix(userAgent, "/webhooks") && !strings.HasSuffix(userAgent, "/preflight")
}
