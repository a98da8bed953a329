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

	"github.com/plumbline-ci/plumbline/pkg/tombstone"
)

// kubeBudget is how many calls to Kubernetes one push with one pipeline may cost the receiver and the controller on a quiet
// installation, from its delivery to its settled event: 14, and two more if the start of its run is reported apart from the end.
// What it may cost at the Git service is another test's.
const kubeBudget = 16

// counted is how many pushes are counted together: what comes late for one push is counted with the next.
const counted = 4

// A push with one pipeline costs no more calls than twice its budget: whether two changes of a run wake the controller once or twice is a
// matter of milliseconds, and calls are repeated on a slow machine.
func TestAPushKeepsToItsBudgetOfKubernetesCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.costs(t) // the first one binds the URL, and mints a token of the App
	log, names := w.auditFromNow(), map[string]bool{}
	for range counted {
		names[w.costs(t)] = true
	}
	within(t, w.callsIn(log, names), 2*kubeBudget)
}

// costs pushes a commit with one pipeline, waits until its event is settled, and returns that event's name.
func (w *world) costs(t *testing.T) string {
	t.Helper()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("hello"), "success", soon)
	w.settled(soon)
	return recordName(w.git, delivery)
}

// within prints the items and compares their sum with the budget.
func within(t *testing.T, items map[string]int, budget int) {
	t.Helper()
	sum, lines := 0, ""
	for _, item := range slices.Sorted(maps.Keys(items)) {
		sum += items[item]
		lines += fmt.Sprintf("%6.2f  %s\n", float64(items[item])/counted, item)
	}
	perPush := float64(sum) / counted
	text := fmt.Sprintf("one push with one pipeline costs %.2f calls to Kubernetes, at most %d are wanted:\n%s", perPush, budget, lines)
	if sum == 0 || sum > budget*counted {
		t.Error(text)
		return
	}
	t.Log(text)
}

// auditFromNow opens the API server's audit log at its end.
func (w *world) auditFromNow() *os.File {
	w.t.Helper()
	log, err := os.Open(shared.cluster.AuditLog())
	w.must(err)
	w.t.Cleanup(func() { _ = log.Close() })
	_, err = log.Seek(0, io.SeekEnd)
	w.must(err)
	return log
}

// callsIn counts the calls of the world's processes in an audit log that are made for the named events, by process, verb and
// resource.
func (w *world) callsIn(log io.Reader, names map[string]bool) map[string]int {
	w.t.Helper()
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
		account, ours := strings.CutPrefix(call.User.Username, "system:serviceaccount:"+w.Namespace+":plumbline-")
		if !ours || call.ObjectRef == nil || !forEvents(call.auditEvent, call.UserAgent) {
			continue
		}
		ref := call.ObjectRef
		if account == "receiver" && call.Verb == "get" && !aboutOne(names, ref.Name) {
			continue // records of the version before, which are looked for as long as a rollout takes
		}
		items[account+" "+strings.TrimSuffix(call.Verb+" "+ref.Resource+"/"+ref.Subresource, "/")]++
	}
	w.must(lines.Err())
	return items
}

// aboutOne tells whether a name is an event's, or that of the page with its tombstone.
func aboutOne(names map[string]bool, name string) bool {
	for event := range names {
		if name == event || name == tombstone.PageOf(event) {
			return true
		}
	}
	return false
}

// forEvents tells whether a call is made for an event. Those that are not have a rate of their own, however many events there are.
func forEvents(call auditEvent, userAgent string) bool {
	ref := call.ObjectRef
	switch {
	case call.Verb == "watch", ref.Resource == "leases":
		return false
	case call.Verb == "list": // by informers and the sweep, but for the tasks of one run
		return ref.Resource == "taskruns"
	case ref.Resource == "configmaps": // a receiver asks for the copies in use, once in 20 s
		return false
	}
	return !strings.HasSuffix(userAgent, "/webhook-secrets") && !strings.HasSuffix(userAgent, "/deliveries") && !strings.HasSuffix(userAgent, "/webhooks") && !strings.HasSuffix(userAgent, "/preflight")
}
