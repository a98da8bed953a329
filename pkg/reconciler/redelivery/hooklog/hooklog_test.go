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
)

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}

// What nobody answered is sent again once, and not by the next process either.
func TestWhatWasMissedIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.deliver("a")
	w.missed("b", "c")
	w.deliver("d")
	w.run(time.Minute)
	w.wantOnce("a", "b", "c", "d")
	w.start()
	w.run(time.Hour)
	w.wantOnce("a", "b", "c", "d")
	w.wantCondition("")
}

// An outage that begins and ends while the process runs: what was missed is sent again within
// seconds after a receiver says that it is there, even if GitLab writes down an attempt late.
func TestAfterAnOutage(t *testing.T) {
	w := newWorld(t)
	w.deliver("a")
	w.run(10 * time.Minute)
	w.missed("b", "c")
	w.heard()
	w.run(10 * time.Second)
	w.wantOnce("b", "c")
	w.missed("late")
	w.run(20 * time.Second)
	w.wantOnce("late")
	w.run(time.Hour)
	w.wantOnce("a", "b", "c", "late")
}

// GitLab takes five a minute.
func TestFiveAMinute(t *testing.T) {
	w := newWorld(t)
	all := names(23)
	w.missed(all...)
	w.run(10 * time.Minute)
	w.wantOnce(all...)
	for i := provider.ResendsAtOnce; i < len(w.when); i++ {
		if w.when[i].Sub(w.when[i-provider.ResendsAtOnce]) < provider.ResendsEvery {
			t.Errorf("resend %d was too early: %v", i, w.when)
		}
	}
	if w.resent[0] != "m0" {
		t.Errorf("the order is %v", w.resent)
	}
}

// However often the process is replaced, all that was missed is recorded in the end, and what was
// refused for good is given up.
func TestProcessesThatEnd(t *testing.T) {
	w := newWorld(t)
	w.missed(names(4)...)
	for range 12 {
		w.run(3 * time.Second)
		w.start()
	}
	w.run(time.Hour)
	w.wantOnce(names(4)...)
}

// While nobody answers, next to nothing is sent, and nothing is given up: GitLab pauses webhooks
// that fail.
func TestNobodyIsThere(t *testing.T) {
	w := newWorld(t)
	w.receive = func(string) int { return 0 }
	w.missed(names(10)...)
	w.run(6 * time.Hour)
	if n := len(w.resent); n < 3 || n > 12 {
		t.Errorf("%d were sent again in 6 hours", n)
	}
	if len(w.events.Events) != 0 {
		t.Errorf("an outage gave up: %s", <-w.events.Events)
	}
	w.receive = nil
	w.heard()
	w.run(4 * time.Minute)
	w.wantOnce(names(10)...)
}

// One that is refused while others are taken is given up, and told. It holds up no other one for
// long.
func TestARefusedDeliveryIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.missed("bad")
	w.receive = refuses("bad")
	for i := range 100 {
		w.deliver(fmt.Sprint("good", i))
		w.run(10 * time.Minute)
	}
	tries := 0
	for _, guid := range w.resent {
		if guid == "bad" {
			tries++
		}
	}
	if tries != maxRefused+1 && tries != maxRefused || len(w.events.Events) != 1 {
		t.Fatalf("%d tries, %d events", tries, len(w.events.Events))
	}
	if told := <-w.events.Events; !strings.Contains(told, "Delivery bad was not recorded") || !strings.Contains(told, reasonGivenUp) {
		t.Errorf("told: %s", told)
	}
}

// What GitLab does not have any more is given up at once.
func TestWhatIsGoneIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.missed("a")
	w.gone = true
	w.run(time.Minute)
	if len(w.events.Events) != 1 || w.process.memoryOf(key()).logs.missing() != 0 {
		t.Errorf("%d events", len(w.events.Events))
	}
}

// What starts nothing, what came before the Repository, and what another webhook or project missed
// is nobody's here.
func TestWhatIsNotOurs(t *testing.T) {
	w := newWorld(t)
	w.missed("issue", "old")
	w.log[0].Starts = false
	w.log[1].At = w.clock.Now().Add(-2 * time.Hour)
	w.run(time.Hour)
	w.missed("other project")
	w.hooks[1].Project = 6
	w.run(time.Hour)
	if len(w.resent) != 0 {
		t.Errorf("sent again: %v", w.resent)
	}
	w.hooks = w.hooks[:1]
	w.run(time.Hour)
	if len(w.resent) != 0 {
		t.Errorf("sent again: %v", w.resent)
	}
	if told := w.wantCondition("Unknown WebhookNotFound"); strings.Contains(told, "chat.example.com") {
		t.Errorf("it tells of other webhooks: %s", told)
	}
}

// What failed while the whole log could not be read is not forgotten.
func TestALogThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.run(10 * time.Minute)
	w.missed("a")
	w.unread = fault.Transientf("TooLarge", "the answer is larger")
	w.run(3 * time.Hour)
	w.missed("b")
	w.run(3 * time.Hour)
	w.unread = nil
	w.run(2 * time.Hour)
	w.wantOnce("a", "b")
}

// What is so old that its event may be forgotten is not sent again: it could run twice. Nor is it
// when GitLab tells no time and it was there when the process began.
func TestWhatIsOld(t *testing.T) {
	w := newWorld(t)
	w.missed("old", "unknown", "new")
	w.log[0].At = w.clock.Now().Add(-time.Minute)
	w.log[1].At = time.Time{}
	w.clock.Step(72 * time.Hour)
	w.log[2].At = w.clock.Now()
	w.run(10 * time.Minute)
	w.missed("later")
	w.log[len(w.log)-1].At = time.Time{}
	w.run(10 * time.Minute)
	w.wantOnce("new", "later")
	if len(w.resent) != 2 {
		t.Errorf("sent again: %v", w.resent)
	}
}

// A webhook that is paused again and again is one message, and nothing is sent to it. What was
// missed meanwhile is sent after that.
func TestAPausedWebhookIsTold(t *testing.T) {
	w := newWorld(t)
	w.missed("a")
	message := ""
	for i := range 5 {
		w.hooks[1].State, w.hooks[1].Until = provider.HookPaused, w.clock.Now().Add(time.Minute<<i)
		w.run(time.Minute << i)
		if told := w.wantCondition("False WebhookPaused"); message != "" && told != message {
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
	if w.statusWrites() != 1 || len(w.resent) != 0 {
		t.Errorf("%d writes, sent again %v", w.statusWrites(), w.resent)
	}
	w.hooks[1].State = provider.HookDisabled
	w.run(10 * time.Minute)
	w.wantCondition("False WebhookDisabled")
	w.hooks[1].State, w.hooks[1].Until = provider.HookCalled, time.Time{}
	w.run(10 * time.Minute)
	w.wantCondition("True Called")
	w.wantOnce("a")
	if ready := w.sync().Status.GetCondition("Ready"); ready != nil && !ready.IsUnknown() {
		t.Errorf("Ready is %v", ready)
	}
}

// A token that may not look is told once, in words that name the role.
func TestATokenThatMayNot(t *testing.T) {
	w := newWorld(t)
	w.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	w.run(24 * time.Hour)
	if told := w.wantCondition("Unknown PermissionMissing"); !strings.Contains(told, "Maintainer") || !strings.Contains(told, "team/token") {
		t.Errorf("told: %s", told)
	}
	if w.statusWrites() != 1 || w.calls > 50 {
		t.Errorf("%d writes, %d calls in a day", w.statusWrites(), w.calls)
	}
	w.fails = nil
	w.run(time.Hour)
	w.wantCondition("True Called")
}

// A service that does not answer is asked less and less, and nothing is told of it.
func TestAServiceThatFails(t *testing.T) {
	w := newWorld(t)
	w.fails = fault.Transientf("Down", "502")
	w.run(24 * time.Hour)
	w.wantCondition("")
	if w.calls > 40 {
		t.Errorf("%d calls in a day", w.calls)
	}
	w.fails = nil
	w.missed("a")
	w.heard()
	w.run(time.Minute)
	w.wantOnce("a")
}

// A quiet webhook costs two calls in five minutes; one that is not claimed, or while webhook-url is
// not set, none.
func TestAQuietWebhook(t *testing.T) {
	w := newWorld(t)
	w.run(time.Hour)
	if w.calls < 20 || w.calls > 30 {
		t.Errorf("%d calls in an hour", w.calls)
	}
	before := w.calls
	w.process.settings().WebhookURL = ""
	w.run(time.Hour)
	w.process.settings().WebhookURL = here
	claim := w.claims.List()[0].(*v1alpha1.RepositoryClaim).DeepCopy()
	claim.Status.ReleasedAt = &metav1.Time{Time: w.clock.Now()}
	w.add(w.claims, claim)
	w.run(time.Hour)
	if w.calls != before {
		t.Errorf("%d calls for nobody", w.calls-before)
	}
}
