// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S5: the events of one Repository cannot be processed, and it is flooded. Two receivers record at
// most a budget each; the Repository's status says so; deliveries for another Repository are
// recorded. When the events are settled, deliveries are accepted again.
func TestFloodedRepositoryStaysWithinBudget(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t,
		setup{receivers: 2, controllers: 1, config: [][3]string{{"plumbline", "open-events-cap", "100"}}})
	const own = 10 // a tenth
	outage := env.git.inject(anything, forge.Fault{Do: forge.Answer(http.StatusServiceUnavailable, nil, "{}")})
	env.git.commit("main", forge.Change{Files: map[string]string{"README": "no pipeline"}})
	var recorded, refused []delivery
	for i := range 3 * own {
		d := env.newDelivery()
		switch status, answer := env.post(env.receivers[i%2], d); status {
		case http.StatusAccepted:
			recorded = append(recorded, d)
		case http.StatusServiceUnavailable:
			refused = append(refused, d)
			if !strings.Contains(answer, "the unsettled events of this Repository have exhausted their budget") {
				t.Errorf("answered %s", answer)
			}
		default:
			t.Fatalf("answered %d %s", status, answer)
		}
	}
	// An event of the other receiver counts when the watch shows it. Each receiver alone keeps to
	// the budget.
	if events, payloads := env.countStored(); len(recorded) < own || len(recorded) > 2*own || events != len(recorded) ||
		payloads != 0 {
		t.Errorf("%d of %d deliveries are answered 202, and %d events and %d payloads stored; the budget is %d",
			len(recorded), 3*own, events, payloads, own)
	}
	env.awaitCondition(pacv1alpha1.RepositoryBudget, "False "+quota.ReasonRepository, "")
	if n := env.countDeliveries(env.receivers[0], "unavailable", quota.ReasonRepository) + env.countDeliveries(
		env.receivers[1], "unavailable", quota.ReasonRepository); n != len(refused) {
		t.Errorf("%d refusals are counted of %d", n, len(refused))
	}
	env.deliver(recorded[0], http.StatusAccepted) // a copy takes nothing from the budget
	env.deliver(env.pushToSecondRepository(), http.StatusAccepted)

	outage.Remove()
	env.awaitCondition(pacv1alpha1.RepositoryBudget, "True Free", "")
	env.eventually(afterFault, "a refused delivery is recorded", func() error {
		if a := env.mustSend(env.receivers[0], refused[0]); a.status != http.StatusAccepted {
			return fmt.Errorf("%v", a)
		}
		return nil
	})
	env.requireInvariants()
}

// pushToSecondRepository returns a push to another repository that has its own Repository.
func (env *environment) pushToSecondRepository() delivery {
	env.t.Helper()
	lib, g := env.forge.CreateRepo("acme", "lib", forge.RepoOptions{}), env.git.(*onGitHub)
	g.Install(g.app.ID, "acme", "acme/lib")
	env.forge.Commit("acme/lib", "main", forge.Change{Files: map[string]string{"README": "no pipeline"}})
	env.createRepositoryWithURL(env.ci, "lib", lib.HTMLURL)
	env.awaitURL(env.ci, "lib")
	return env.forge.PushDelivery(forge.PushEvent{Repo: "acme/lib", Ref: "refs/heads/main"})
}

// S35: an attacker who has seen a delivery sends its body and signature again under other ids, to
// another receiver, during the run and after its end. Nothing starts. The same push made again is
// another event, as every push is.
func TestReplayUnderAnotherIDStartsNothing(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 2, controllers: 1})
	sha, d := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	env.deliver(d, http.StatusAccepted)
	name := recordName(env.git, d)
	replay := func(id string) {
		t.Helper()
		copied := d.(forge.Delivery)
		copied.GUID, copied.Header = id, copied.Header.Clone()
		copied.Header.Set("X-GitHub-Delivery", id)
		if a := env.mustSend(env.receivers[1], copied); a.status != http.StatusAccepted ||
			!strings.Contains(a.body, "already recorded as "+name) {
			t.Errorf("a replay is answered %v, want 202 and that it is recorded as %s", a, name)
		}
	}
	replay("11111111-cc78-11e3-81ab-4c9367dc0958")
	env.awaitCheck(sha, checkName("hello"), "success", soon)
	env.awaitAllSettled(soon)
	replay("22222222-cc78-11e3-81ab-4c9367dc0958")
	env.requireOneOfEach(sha)
	if n := env.countDeliveries(env.receivers[1], "duplicate", "AlreadyRecorded"); n != 2 {
		t.Errorf("%d duplicates are counted, want 2", n)
	}
	env.deliver(env.newDelivery(), http.StatusAccepted)
	if n := len(env.awaitAllSettled(soon)); n != 2 {
		t.Errorf("%d events after the push was made again, want 2", n)
	}
}
