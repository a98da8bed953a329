// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net/http"
	"os/exec"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A8: while a dead process holds every lease, receivers that have never seen a leader become ready,
// find the Repository in their caches, and record and acknowledge deliveries; a controller that
// waits for the leases does nothing. When they run out it does the work.
func TestA8NoLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{controllers: 1, standby: true})
	w.claimed()
	w.leads() // every lease is there to be taken
	w.must(w.controllers[0].Kill())
	w.takenByTheDead()
	second := w.startController(true)
	for range 2 {
		w.startReceiver(true)
	}
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("leaderless", "push")})
	for n, receiver := range w.receivers {
		if answer := w.sent(receiver, delivery); answer.status != http.StatusAccepted {
			t.Errorf("receiver %d answers a push with %v, want 202", n, answer)
		}
		ignored := w.sent(receiver, w.forge.PingDelivery(w.App.ID))
		if ignored.status != http.StatusOK {
			t.Errorf("receiver %d answers a ping with %v, want 200", n, ignored)
		}
		for _, call := range receiver.Proxy.Calls() {
			if call.Is("get", "repositoryclaims") || call.Is("get", "repositories") || call.Resource == "leases" {
				t.Errorf("receiver %d had to %s %s: its caches are not filled, or it looks at leases", n, call.Verb, call.Resource)
			}
		}
	}
	w.eventually(soon, "the second controller has found the leases taken", func() error { return w.made(second, "get leases") })
	if events := w.events(); len(events) != 1 || len(events[0].Status.Conditions) != 0 {
		t.Errorf("without a leader the events are %+v, want one that nobody has touched", events)
	}
	w.must(w.endLeases(w.ctx)) // an hour later
	w.checkReaches(sha, checkName("leaderless"), "success", afterFault)
	w.onlyOne(sha)
}

// takenByTheDead gives every lease to a process that is gone, for an hour.
func (w *world) takenByTheDead() {
	w.t.Helper()
	leases := w.Kube.CoordinationV1().Leases(w.Namespace)
	list, err := leases.List(w.ctx, metav1.ListOptions{})
	w.must(err)
	if len(list.Items) == 0 {
		w.t.Fatal("there is no lease")
	}
	for i := range list.Items {
		dead, hour, now := "dead_0", int32(3600), metav1.NowMicro()
		list.Items[i].Spec.HolderIdentity, list.Items[i].Spec.LeaseDurationSeconds, list.Items[i].Spec.RenewTime = &dead, &hour, &now
		_, err := leases.Update(w.ctx, &list.Items[i], metav1.UpdateOptions{})
		w.must(err)
	}
}

// No code of leader election is in the receiver's binary: the linker keeps what can be reached, as
// the controller's shows.
func TestTheReceiverHasNoLeaderElection(t *testing.T) {
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
