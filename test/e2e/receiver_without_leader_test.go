// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net/http"
	"os/exec"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A8: a dead process holds every lease. Receivers that have never seen a leader become ready, find
// the Repository in their caches, and record and acknowledge deliveries. A controller that waits
// for the leases does nothing. When the leases expire, it does the work.
func TestReceiversWorkWithoutLeader(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{controllers: 1, standby: true})
	env.awaitLeases() // every lease exists
	env.must(env.controllers[0].Kill())
	env.giveLeasesToDeadProcess()
	second := env.startController(true)
	for range 2 {
		env.startReceiver(true)
	}
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("leaderless", "push")})
	for n, receiver := range env.receivers {
		if answer := env.mustSend(receiver, delivery); answer.status != http.StatusAccepted {
			t.Errorf("receiver %d answers a push with %v, want 202", n, answer)
		}
		ignored := env.mustSend(receiver, env.forge.PingDelivery(env.App.ID))
		if ignored.status != http.StatusOK {
			t.Errorf("receiver %d answers a ping with %v, want 200", n, ignored)
		}
		for _, call := range receiver.Proxy.Calls() {
			if call.Is("get", "repositoryclaims") || call.Is("get", "repositories") || call.Resource == "leases" {
				t.Errorf("receiver %d had to %s %s: its caches are not filled, or it looks at leases", n, call.Verb, call.Resource)
			}
		}
	}
	env.eventually(soon, "the second controller has found the leases taken",
		func() error { return env.hasCalled(second, "get leases") })
	if events := env.events(); len(events) != 1 || len(events[0].Status.Conditions) != 0 {
		t.Errorf("without a leader the events are %+v, want one that no controller has changed", events)
	}
	env.must(env.deleteLeases(env.ctx)) // an hour later
	env.awaitCheck(sha, checkName("leaderless"), "success", afterFault)
	env.requireOneOfEach(sha)
}

// giveLeasesToDeadProcess gives every lease to a process that does not run, for an hour.
func (env *environment) giveLeasesToDeadProcess() {
	env.t.Helper()
	leases := env.Kube.CoordinationV1().Leases(env.Namespace)
	list, err := leases.List(env.ctx, metav1.ListOptions{})
	env.must(err)
	if len(list.Items) == 0 {
		env.t.Fatal("there is no lease")
	}
	for i := range list.Items {
		dead, hour, now := "dead_0", int32(3600), metav1.NowMicro()
		list.Items[i].Spec.HolderIdentity, list.Items[i].Spec.LeaseDurationSeconds, list.Items[i].Spec.RenewTime = &dead,
			&hour, &now
		env.must(errOf(leases.Update(env.ctx, &list.Items[i], metav1.UpdateOptions{})))
	}
}

// The receiver's binary has no code of leader election. The linker keeps reachable code, as the
// controller's binary shows.
func TestReceiverHasNoLeaderElection(t *testing.T) {
	t.Parallel()
	const elector = "tools/leaderelection."
	for program, want := range map[string]bool{shared.programs.Receiver: false, shared.programs.Controller: true} {
		symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", program).Output()
		if err != nil || len(symbols) == 0 {
			t.Fatalf("go tool nm %s: %d bytes, %v", program, len(symbols), err)
		}
		if got := bytes.Contains(symbols, []byte(elector)); got != want {
			t.Errorf("leader election in %s: %t, want %t", program, got, want)
		}
	}
}
