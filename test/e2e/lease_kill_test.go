// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
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

// The controller gets SIGTERM while it creates a PipelineRun and another controller waits for the
// lease. It holds the lease until the creation is answered and recorded, and ends within its grace
// period. If it released the lease earlier, the other one might create the run and see it end and
// be deleted, and then the first would create it again.
func TestLeaseIsHeldDuringRunCreation(t *testing.T) {
	t.Parallel()
	env, first := newControllerPair(t)
	answer := make(chan struct{})
	create := first.Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.Hold(answer)})
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": withLargePlan(pipeline("kept", "push", held))})
	env.awaitHits(create, 1)
	before := env.leaseHolders()
	env.must(first.Terminate())
	env.eventually(soon, "the controller drains", func() error { return env.hasReleasedLeases(first) })
	env.eventually(soon, "another one leads the free queues", func() error {
		if now := env.leaseHolders(); now["sweep"] == "" || now["sweep"] == before["sweep"] {
			return fmt.Errorf("the leases are %v", now)
		}
		return nil
	})
	if now := env.leaseHolders(); now["gitevents"] != before["gitevents"] {
		t.Errorf("the lease of the event was given up: before %v, now %v", before, now)
	}
	close(answer)
	env.requireExit(first)
	env.awaitCheck(sha, checkName("kept"), "in_progress", takeover)
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.requireOneRunAndCheck(sha, "kept")
	env.requireOneCheck(sha, checkName("kept"))
}

// leaseHolders returns the holder of the lease of each queue.
func (env *environment) leaseHolders() map[string]string {
	env.t.Helper()
	list, err := env.Kube.CoordinationV1().Leases(env.Namespace).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	holders := map[string]string{}
	for i := range list.Items {
		queue := strings.Split(list.Items[i].Name, ".")[1]
		if holder := list.Items[i].Spec.HolderIdentity; holder != nil {
			holders[queue] = *holder
		}
	}
	return holders
}

// A3, H1 in small: one of two receivers and one of two controllers are killed while they work on
// 20 deliveries. Deliveries without acknowledgement are sent to the other receiver. Each delivery
// ends with one run and a correct check.
func TestProcessesKilledUnderLoad(t *testing.T) {
	// A hook on GitLab that fails four times in a row pauses, for a minute by default.
	forEachService(t, setup{
		receivers: 2, controllers: 1, standby: true, proxied: true, gitlab: gitlab.Options{FirstPause: time.Second},
	}, finishesAcknowledged)
}

func finishesAcknowledged(t *testing.T, env *environment) {
	const load, killAfter = 20, 6
	leader := env.controllers[0]
	env.eventually(soon, "the first controller leads", func() error { return env.hasCalled(leader, "list eventpayloads") })
	env.startController(true)
	var shas []string
	var clients errgroup.Group
	clients.SetLimit(4)
	for i := range load {
		ends := `test.plumbline.dev/exit-code: "` + strconv.Itoa(i%2) + `"`
		sha, delivery := env.push(map[string]string{
			".tekton/push.yaml": pipeline("load", "push", ends), "i": strconv.Itoa(i),
		})
		shas = append(shas, sha)
		clients.Go(func() error { return env.deliverUntilAcknowledged(delivery, i) })
		if i == killAfter {
			env.must(env.receivers[0].Kill())
			env.must(leader.Kill())
		}
	}
	env.must(clients.Wait())
	env.must(env.receivers[0].Start(env.ctx))
	env.must(leader.Start(env.ctx))
	for i, sha := range shas {
		check := env.awaitCheck(sha, checkName("load"), "completed", afterFault)
		if want := []string{"success", "failure"}[i%2]; check.Conclusion != want {
			t.Errorf("the check of push %d says %s, want %s: %s", i, check.Conclusion, want, check.Text)
		}
	}
	env.awaitAllSettled(afterFault)
	env.requireRunCount(load)
}

// deliverUntilAcknowledged delivers to one receiver and then the other until one acknowledges,
// like a Service in front of both and a user who asks for a redelivery.
func (env *environment) deliverUntilAcknowledged(d delivery, first int) error {
	ctx, cancel := context.WithTimeout(env.ctx, afterFault)
	defer cancel()
	var last error
	for i := first; ctx.Err() == nil; i++ {
		status, body, err := env.git.deliver(ctx, env.receivers[i%len(env.receivers)].URL, d)
		if err == nil && status/100 == 2 {
			return nil
		}
		last = fmt.Errorf("delivery %s: %d %s: %w", d.ID(), status, body, err)
	}
	return last
}

// requireExit requires that a process that got SIGTERM ends within its grace period.
func (env *environment) requireExit(p *installation.Process) {
	env.t.Helper()
	ctx, cancel := context.WithTimeout(env.ctx, drained)
	defer cancel()
	env.must(p.Wait(ctx))
}

// hasReleasedLeases reports whether the process starts nothing new: it has released its leases.
func (env *environment) hasReleasedLeases(p *installation.Process) error {
	if !strings.Contains(env.processLog(p), "has stopped leading") {
		return fmt.Errorf("%s still leads", p.Name())
	}
	return nil
}
