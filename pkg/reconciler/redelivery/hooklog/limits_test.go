// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

func key() types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: "app"} }

// Steps of one limit are apart, in the order in which they came. A step that waits for the first
// limit uses nothing of the others.
func TestLimitsDelaySteps(t *testing.T) {
	l, now := newLimits(), time.Now()
	of := func(token string) []limit {
		return []limit{{name: token, every: 2 * time.Second}, {name: "host", every: time.Second / 4, atOnce: 2}}
	}
	left, leave := l.enter("a-0", of("a"), now)
	if left != 0 {
		t.Fatalf("the first waits %v", left)
	}
	leave()
	for i := range 100 {
		if left, _ := l.enter(fmt.Sprint("a-", i+1), of("a"), now); left != time.Duration(i+1)*2*time.Second {
			t.Fatalf("number %d waits %v", i+1, left)
		}
	}
	if left, _ := l.enter("b", of("b"), now); left != time.Second/4 {
		t.Errorf("one with another token waits %v", left)
	}
	if left, leave := l.enter("a-1", of("a"), now.Add(2*time.Second)); left != 0 {
		t.Errorf("when it may run it waits %v", left)
	} else {
		leave()
	}
}

func TestLimitsBoundRunningSteps(t *testing.T) {
	l, now := newLimits(), time.Now()
	slow := []limit{{name: "slow", atOnce: 2}}
	var leave func()
	for i := range 2 {
		var left time.Duration
		if left, leave = l.enter(fmt.Sprint(i), slow, now); left != 0 {
			t.Fatalf("number %d waits %v", i, left)
		}
	}
	if left, _ := l.enter("third", slow, now); left != busyWait {
		t.Errorf("the third waits %v", left)
	}
	if left, _ := l.enter("other", []limit{{name: "quick", atOnce: 2}}, now); left != 0 {
		t.Errorf("one with another limit waits %v", left)
	}
	leave()
	if left, _ := l.enter("third", slow, now); left != 0 {
		t.Errorf("then the third waits %v", left)
	}
}

// Another webhook may have a similar address.
func TestWebhooksThatLeadElsewhereAreNotOurs(t *testing.T) {
	for url, want := range map[string]bool{
		"https://hooks.example.com/in": true, "https://HOOKS.example.com/in/": true,
		"https://hooks.example.com/in/team-a": true,
		"https://hooks.example.com:443/in":    true,
		"https://hooks.example.com/inner":     false, "https://hooks.example.com/": false,
		"http://hooks.example.com/in":               false,
		"https://hooks.example.com.evil.example/in": false, "https://hooks.example.com:8443/in": false, "": false,
		"::": false,
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
		if got := provider.ProjectAt(c.base, c.page); got.Owner != c.owner || got.Name != c.name || got.URL != c.page {
			t.Errorf("%s at %s is %+v", c.page, c.base, got)
		}
	}
}

// Resends come although each step waits long for its limits and receivers signal meanwhile.
func TestReadsAlternateWithResends(t *testing.T) {
	e := newEnv(t)
	e.run(10 * time.Minute)
	e.missed("a")
	same, err := e.source.target(e.sync())
	if err != nil {
		t.Fatal(err)
	}
	for second := range 120 {
		for n := range 8 {
			if left, leave := e.source.limits.enter(fmt.Sprint("other-", n), same.limits(), e.clock.Now()); left == 0 {
				leave()
			}
		}
		if second%10 == 0 {
			e.process.Signal()
		}
		e.reconcile()
		e.clock.Step(time.Second)
	}
	e.wantOnce("a")
}

// A changed Repository may name another project.
func TestChangedRepositoryIsReadFirst(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	e.reconcile()
	e.hooks[1].State = provider.HookPaused
	changed := e.sync().DeepCopy()
	changed.Generation++
	if _, err := e.client.PipelinesascodeV1alpha1().Repositories("team").Update(t.Context(), changed,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.sync()
	e.clock.Step(10 * time.Second)
	e.run(time.Minute)
	if len(e.resent) != 0 {
		t.Errorf("resent: %v", e.resent)
	}
}

func TestOutageGivesUpNothing(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	e.receive = func(string) int { return 0 }
	e.run(24 * time.Hour)
	if len(e.resent) <= redelivery.MaxRefused || len(e.events.Events) != 0 {
		t.Errorf("%d tries, %d events", len(e.resent), len(e.events.Events))
	}
	e.receive = nil
	e.signal()
	e.run(time.Minute)
	e.wantOnce("a")
}
