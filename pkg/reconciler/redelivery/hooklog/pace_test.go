// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func key() types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: "app"} }

// Steps of one lane are apart, in the order in which they came; who waits for long in one lane
// takes nothing of the others.
func TestTurns(t *testing.T) {
	p, now := newPace(), time.Now()
	lanes := func(token string) []lane {
		return []lane{{name: token, every: 2 * time.Second}, {name: "host", every: time.Second / 4, atOnce: 2}}
	}
	left, leave := p.enter("a-0", lanes("a"), now)
	if left != 0 {
		t.Fatalf("the first waits %v", left)
	}
	leave()
	for i := range 100 {
		if left, _ := p.enter(fmt.Sprint("a-", i+1), lanes("a"), now); left != time.Duration(i+1)*2*time.Second {
			t.Fatalf("number %d waits %v", i+1, left)
		}
	}
	if left, _ := p.enter("b", lanes("b"), now); left != time.Second/4 {
		t.Errorf("one with another token waits %v", left)
	}
	if left, leave := p.enter("a-1", lanes("a"), now.Add(2*time.Second)); left != 0 {
		t.Errorf("when its turn has come it waits %v", left)
	} else {
		leave()
	}
}

// No more than a lane's share are in it at once.
func TestAtOnce(t *testing.T) {
	p, now := newPace(), time.Now()
	slow := []lane{{name: "slow", atOnce: 2}}
	var leave func()
	for i := range 2 {
		var left time.Duration
		if left, leave = p.enter(fmt.Sprint(i), slow, now); left != 0 {
			t.Fatalf("number %d waits %v", i, left)
		}
	}
	if left, _ := p.enter("third", slow, now); left != busyWait {
		t.Errorf("the third waits %v", left)
	}
	if left, _ := p.enter("other", []lane{{name: "quick", atOnce: 2}}, now); left != 0 {
		t.Errorf("one of another lane waits %v", left)
	}
	leave()
	if left, _ := p.enter("third", slow, now); left != 0 {
		t.Errorf("then the third waits %v", left)
	}
}

// Webhooks that lead elsewhere are not ours, however similar their addresses.
func TestOurs(t *testing.T) {
	for url, want := range map[string]bool{
		"https://hooks.example.com/in": true, "https://HOOKS.example.com/in/": true, "https://hooks.example.com/in/team-a": true,
		"https://hooks.example.com:443/in": true,
		"https://hooks.example.com/inner":  false, "https://hooks.example.com/": false, "http://hooks.example.com/in": false,
		"https://hooks.example.com.evil.example/in": false, "https://hooks.example.com:8443/in": false, "": false, "::": false,
	} {
		if got := len((&target{leads: here}).ours([]provider.Hook{{URL: url}})) == 1; got != want {
			t.Errorf("%q: %t", url, got)
		}
	}
}

func TestProjectAt(t *testing.T) {
	for _, c := range []struct{ base, page, owner, name string }{
		{"https://gitlab.com", "https://gitlab.com/acme/team/app", "acme/team", "app"},
		{"https://git.example/gitlab", "https://git.example/gitlab/acme/app", "acme", "app"},
		{"https://git.example/git", "https://git.example/gitlab/app", "gitlab", "app"},
	} {
		if got := projectAt(c.base, c.page); got.Owner != c.owner || got.Name != c.name || got.URL != c.page {
			t.Errorf("%s at %s is %+v", c.page, c.base, got)
		}
	}
}

// However long a step waits for its turn, and however often a receiver asks for a look meanwhile,
// what is missed is sent again: looks and resends take turns.
func TestLooksLeaveTurnsToResends(t *testing.T) {
	w := newWorld(t)
	w.run(10 * time.Minute)
	w.missed("a")
	same, err := w.process.target(w.sync())
	if err != nil {
		t.Fatal(err)
	}
	for second := range 120 {
		for n := range 8 {
			if left, leave := w.process.pace.enter(fmt.Sprint("other-", n), same.lanes(), w.clock.Now()); left == 0 {
				leave()
			}
		}
		if second%10 == 0 {
			w.process.Heard()
		}
		w.reconcile()
		w.clock.Step(time.Second)
	}
	w.wantOnce("a")
}

// After a change of the Repository, which may name another project now, a look comes first.
func TestALookComesFirstAfterAChange(t *testing.T) {
	w := newWorld(t)
	w.missed("a")
	w.reconcile()
	w.hooks[1].State = provider.HookPaused
	changed := w.sync().DeepCopy()
	changed.Generation++
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories("team").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.clock.Step(10 * time.Second)
	w.run(time.Minute)
	if len(w.resent) != 0 {
		t.Errorf("sent again: %v", w.resent)
	}
}

// A day without anybody gives up nothing, however often it was tried.
func TestAnOutageGivesUpNothing(t *testing.T) {
	w := newWorld(t)
	w.missed("a")
	w.receive = func(string) int { return 0 }
	w.run(24 * time.Hour)
	if len(w.resent) <= maxRefused || len(w.events.Events) != 0 {
		t.Errorf("%d tries, %d events", len(w.resent), len(w.events.Events))
	}
	w.receive = nil
	w.heard()
	w.run(time.Minute)
	w.wantOnce("a")
}
