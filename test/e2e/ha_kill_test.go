// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// SIGTERM while a PipelineRun is being created and another controller waits for the lease: the
// first keeps it until that has its answer and is written down, and ends within its grace period.
// If it gave it up before, the other one might create the run, see it end and be deleted, and the
// first would create it again.
func TestTheLeaseIsKeptWhileARunIsCreated(t *testing.T) {
	t.Parallel()
	w, first := newPair(t)
	answer := make(chan struct{})
	create := first.Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.Hold(answer)})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": bulky(pipeline("kept", "push", held))})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(create, 1)
	before := w.holders()
	w.must(first.Terminate())
	w.eventually(soon, "the controller drains", func() error { return w.released(first) })
	w.eventually(soon, "another one leads what nobody works on", func() error {
		if now := w.holders(); now["sweep"] == "" || now["sweep"] == before["sweep"] {
			return fmt.Errorf("the leases are %v", now)
		}
		return nil
	})
	if now := w.holders(); now["gitevents"] != before["gitevents"] {
		t.Errorf("the lease of the event was given up: before %v, now %v", before, now)
	}
	close(answer)
	w.ends(first)
	w.checkReaches(sha, checkName("kept"), "in_progress", takeover)
	w.release(w.created(sha))
	w.endsOnce(sha, "kept")
	w.oneCheck(sha, checkName("kept"))
}

// holders returns who holds the lease of each queue, of which there is one each.
func (w *world) holders() map[string]string {
	w.t.Helper()
	list, err := w.Kube.CoordinationV1().Leases(w.Namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	holders := map[string]string{}
	for i := range list.Items {
		queue := strings.Split(list.Items[i].Name, ".")[1]
		if holder := list.Items[i].Spec.HolderIdentity; holder != nil {
			holders[queue] = *holder
		}
	}
	return holders
}

// A3, H1, small: of two receivers and two controllers that work on 20 deliveries one each is
// killed. What was not acknowledged is delivered to the other receiver; each delivery ends with one
// run and a check that tells the truth.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	// A hook on GitLab that fails four times in a row pauses, a minute as shipped.
	forEachService(t, setup{receivers: 2, controllers: 1, standby: true, proxied: true, gitlab: gitlab.Options{FirstPause: time.Second}}, endsWhatItAcknowledged)
}

func endsWhatItAcknowledged(t *testing.T, w *world) {
	const load, killAfter = 20, 6
	leader := w.controllers[0]
	w.eventually(soon, "the first controller leads", func() error { return w.made(leader, "list eventpayloads") })
	w.startController(true)
	var shas []string
	var clients errgroup.Group
	clients.SetLimit(4)
	for i := range load {
		ends := `test.plumbline.dev/exit-code: "` + strconv.Itoa(i%2) + `"`
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("load", "push", ends), "i": strconv.Itoa(i)})
		shas = append(shas, sha)
		clients.Go(func() error { return w.insist(delivery, i) })
		if i == killAfter {
			w.must(w.receivers[0].Kill())
			w.must(leader.Kill())
		}
	}
	w.must(clients.Wait())
	w.must(w.receivers[0].Start(w.ctx))
	w.must(leader.Start(w.ctx))
	for i, sha := range shas {
		check := w.checkReaches(sha, checkName("load"), "completed", afterFault)
		if want := []string{"success", "failure"}[i%2]; check.Conclusion != want {
			t.Errorf("the check of push %d says %s, want %s: %s", i, check.Conclusion, want, check.Text)
		}
	}
	w.settled(afterFault)
	if runs := w.runs(); len(runs) != load {
		t.Errorf("%d PipelineRuns, want %d", len(runs), load)
	}
}

// insist delivers to one receiver and then the other until one acknowledges, as a Service in front
// of both would have it and a person who asks for a redelivery.
func (w *world) insist(d delivery, first int) error {
	ctx, cancel := context.WithTimeout(w.ctx, afterFault)
	defer cancel()
	var last error
	for i := first; ctx.Err() == nil; i++ {
		status, body, err := w.git.deliver(ctx, w.receivers[i%len(w.receivers)].URL, d)
		if err == nil && status/100 == 2 {
			return nil
		}
		last = fmt.Errorf("delivery %s: %d %s: %w", d.ID(), status, body, err)
	}
	return last
}

// ends requires that a process that was told to is gone within its grace period.
func (w *world) ends(p *installation.Process) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, drained)
	defer cancel()
	w.must(p.Wait(ctx))
}

// released reports whether the process begins nothing new: it has let go of the leases under which
// it does not work.
func (w *world) released(p *installation.Process) error {
	if !strings.Contains(w.log(p), "has stopped leading") {
		return fmt.Errorf("%s still leads", p.Name())
	}
	return nil
}
