// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}

// What nobody answered is sent again once, and not by the next process either.
func TestWhatWasMissedIsSentAgain(t *testing.T) {
	e := newEnv(t)
	e.deliver("a")
	e.missed("b", "c")
	e.deliver("d")
	e.run(time.Minute)
	e.wantOnce("a", "b", "c", "d")
	e.start()
	e.run(time.Hour)
	e.wantOnce("a", "b", "c", "d")
	e.wantCondition("")
}

// An outage that begins and ends while the process runs: what was missed is sent again within
// seconds after a receiver says that it is there, even if GitLab writes down an attempt late.
func TestAfterAnOutage(t *testing.T) {
	e := newEnv(t)
	e.deliver("a")
	e.run(10 * time.Minute)
	e.missed("b", "c")
	e.signal()
	e.run(10 * time.Second)
	e.wantOnce("b", "c")
	e.missed("late")
	e.run(20 * time.Second)
	e.wantOnce("late")
	e.run(time.Hour)
	e.wantOnce("a", "b", "c", "late")
}

// GitLab takes five a minute.
func TestFiveAMinute(t *testing.T) {
	e := newEnv(t)
	all := names(23)
	e.missed(all...)
	e.run(10 * time.Minute)
	e.wantOnce(all...)
	for i := provider.ResendsAtOnce; i < len(e.when); i++ {
		if e.when[i].Sub(e.when[i-provider.ResendsAtOnce]) < provider.ResendsEvery {
			t.Errorf("resend %d was too early: %v", i, e.when)
		}
	}
	if e.resent[0] != "m0" {
		t.Errorf("the order is %v", e.resent)
	}
}

// However often the process is replaced, all that was missed is recorded in the end, and what was
// refused for good is given up.
func TestProcessesThatEnd(t *testing.T) {
	e := newEnv(t)
	e.missed(names(4)...)
	for range 12 {
		e.run(3 * time.Second)
		e.start()
	}
	e.run(time.Hour)
	e.wantOnce(names(4)...)
}

// While nobody answers, next to nothing is sent, and nothing is given up: GitLab pauses webhooks
// that fail.
func TestNobodyIsThere(t *testing.T) {
	e := newEnv(t)
	e.receive = func(string) int { return 0 }
	e.missed(names(10)...)
	e.run(6 * time.Hour)
	if n := len(e.resent); n < 3 || n > 12 {
		t.Errorf("%d were sent again in 6 hours", n)
	}
	if len(e.events.Events) != 0 {
		t.Errorf("an outage gave up: %s", <-e.events.Events)
	}
	e.receive = nil
	e.signal()
	e.run(4 * time.Minute)
	e.wantOnce(names(10)...)
}

// One that is refused while others are taken is given up, and told. It holds up no other one for
// long.
func TestARefusedDeliveryIsGivenUp(t *testing.T) {
	e := newEnv(t)
	e.missed("bad")
	e.receive = refuses("bad")
	for i := range 100 {
		e.deliver(fmt.Sprint("good", i))
		e.run(10 * time.Minute)
	}
	tries := 0
	for _, guid := range e.resent {
		if guid == "bad" {
			tries++
		}
	}
	if tries != redelivery.MaxRefused+1 && tries != redelivery.MaxRefused || len(e.events.Events) != 1 {
		t.Fatalf("%d tries, %d events", tries, len(e.events.Events))
	}
	if told := <-e.events.Events; !strings.Contains(told, "Delivery bad was not recorded") || !strings.Contains(told, redelivery.ReasonGivenUp) {
		t.Errorf("told: %s", told)
	}
}

// What GitLab does not have any more is given up at once.
func TestWhatIsGoneIsGivenUp(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	e.gone = true
	e.run(time.Minute)
	if len(e.events.Events) != 1 || e.source.memoryOf(key()).hooks.missed() != nil {
		t.Errorf("%d events", len(e.events.Events))
	}
}

// What starts nothing, what came before the Repository, and what another webhook or project missed
// is nobody's here.
func TestWhatIsNotOurs(t *testing.T) {
	e := newEnv(t)
	e.missed("issue", "old")
	e.log[0].Starts = false
	e.log[1].At = e.clock.Now().Add(-2 * time.Hour)
	e.run(time.Hour)
	e.missed("other project")
	e.hooks[1].Project = 6
	e.run(time.Hour)
	if len(e.resent) != 0 {
		t.Errorf("sent again: %v", e.resent)
	}
	e.hooks = e.hooks[:1]
	e.run(time.Hour)
	if len(e.resent) != 0 {
		t.Errorf("sent again: %v", e.resent)
	}
	if told := e.wantCondition("Unknown WebhookNotFound"); strings.Contains(told, "chat.example.com") {
		t.Errorf("it tells of other webhooks: %s", told)
	}
}

// What failed while the whole log could not be read is not forgotten.
func TestALogThatCannotBeRead(t *testing.T) {
	e := newEnv(t)
	e.run(10 * time.Minute)
	e.missed("a")
	e.unread = fault.Transientf("TooLarge", "the answer is larger")
	e.run(3 * time.Hour)
	e.missed("b")
	e.run(3 * time.Hour)
	e.unread = nil
	e.run(2 * time.Hour)
	e.wantOnce("a", "b")
}

// What is so old that its event may be forgotten is not sent again: it could run twice. Nor is it
// when GitLab tells no time and it was there when the process began.
func TestWhatIsOld(t *testing.T) {
	e := newEnv(t)
	e.missed("old", "unknown", "new")
	e.log[0].At = e.clock.Now().Add(-time.Minute)
	e.log[1].At = time.Time{}
	e.clock.Step(72 * time.Hour)
	e.log[2].At = e.clock.Now()
	e.run(10 * time.Minute)
	e.missed("later")
	e.log[len(e.log)-1].At = time.Time{}
	e.run(10 * time.Minute)
	e.wantOnce("new", "later")
	if len(e.resent) != 2 {
		t.Errorf("sent again: %v", e.resent)
	}
}

// A webhook that is paused again and again is one message, and nothing is sent to it. What was
// missed meanwhile is sent after that.
func TestAPausedWebhookIsTold(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	message := ""
	for i := range 5 {
		e.hooks[1].State, e.hooks[1].Until = provider.HookPaused, e.clock.Now().Add(time.Minute<<i)
		e.run(time.Minute << i)
		if told := e.wantCondition("False WebhookPaused"); message != "" && told != message {
			t.Errorf("the message has changed from %q to %q", message, told)
		} else {
			message = told
		}
	}
	for _, remedy := range []string{"Settings, Webhooks, under Recent events", "press Test there: an answer of 2xx enables it at once", "What happens until then is not sent later"} {
		if !strings.Contains(message, remedy) {
			t.Errorf("the message does not say %q: %s", remedy, message)
		}
	}
	if e.statusWrites() != 1 || len(e.resent) != 0 {
		t.Errorf("%d writes, sent again %v", e.statusWrites(), e.resent)
	}
	e.hooks[1].State = provider.HookDisabled
	e.run(10 * time.Minute)
	e.wantCondition("False WebhookDisabled")
	e.hooks[1].State, e.hooks[1].Until = provider.HookCalled, time.Time{}
	e.run(10 * time.Minute)
	e.wantCondition("True Called")
	e.wantOnce("a")
	if ready := e.sync().Status.GetCondition("Ready"); ready != nil && !ready.IsUnknown() {
		t.Errorf("Ready is %v", ready)
	}
}

// A token that may not look is told once, in words that name the role.
func TestATokenThatMayNot(t *testing.T) {
	e := newEnv(t)
	e.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	e.run(24 * time.Hour)
	if told := e.wantCondition("Unknown PermissionMissing"); !strings.Contains(told, "Maintainer") || !strings.Contains(told, "team/token") {
		t.Errorf("told: %s", told)
	}
	if e.statusWrites() != 1 || e.calls > 50 {
		t.Errorf("%d writes, %d calls in a day", e.statusWrites(), e.calls)
	}
	e.fails = nil
	e.run(time.Hour)
	e.wantCondition("True Called")
}

// A service that does not answer is asked less and less, and nothing is told of it.
func TestAServiceThatFails(t *testing.T) {
	e := newEnv(t)
	e.fails = fault.Transientf("Down", "502")
	e.run(24 * time.Hour)
	e.wantCondition("")
	if e.calls > 40 {
		t.Errorf("%d calls in a day", e.calls)
	}
	e.fails = nil
	e.missed("a")
	e.signal()
	e.run(time.Minute)
	e.wantOnce("a")
}

// A quiet webhook costs two calls in five minutes; one that is not claimed, or while webhook-url is
// not set, none.
func TestAQuietWebhook(t *testing.T) {
	e := newEnv(t)
	e.run(time.Hour)
	if e.calls < 20 || e.calls > 30 {
		t.Errorf("%d calls in an hour", e.calls)
	}
	before := e.calls
	e.source.settings().WebhookURL = ""
	e.run(time.Hour)
	e.source.settings().WebhookURL = here
	claim := e.claims.List()[0].(*v1alpha1.RepositoryClaim).DeepCopy()
	claim.Status.ReleasedAt = &metav1.Time{Time: e.clock.Now()}
	e.add(e.claims, claim)
	e.run(time.Hour)
	if e.calls != before {
		t.Errorf("%d calls for nobody", e.calls-before)
	}
}
