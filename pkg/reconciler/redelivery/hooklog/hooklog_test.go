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

// The next process does not resend them again.
func TestUndeliveredWebhooksAreResentOnce(t *testing.T) {
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

// An outage begins and ends while the process runs. Its deliveries are resent within seconds after
// a signal, even if GitLab lists an attempt late.
func TestOutageIsMadeUpForWithinSeconds(t *testing.T) {
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

// GitLab allows a user five resends a minute in a project.
func TestFiveResendsAMinute(t *testing.T) {
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

func TestReplacedProcessesLoseNothing(t *testing.T) {
	e := newEnv(t)
	e.missed(names(4)...)
	for range 12 {
		e.run(3 * time.Second)
		e.start()
	}
	e.run(time.Hour)
	e.wantOnce(names(4)...)
}

// GitLab pauses webhooks that fail.
func TestOutageCausesFewResends(t *testing.T) {
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

// A delivery that keeps failing while others succeed is given up with an Event.
func TestRefusedDeliveryIsGivenUp(t *testing.T) {
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
	if text := <-e.events.Events; !strings.Contains(text, "Delivery bad was not recorded") ||
		!strings.Contains(text, redelivery.ReasonGivenUp) {
		t.Errorf("text: %s", text)
	}
}

func TestDeliveryThatGitLabHasDroppedIsGivenUp(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	e.gone = true
	e.run(time.Minute)
	if len(e.events.Events) != 1 || e.source.memoryOf(key()).hooks.missed() != nil {
		t.Errorf("%d events", len(e.events.Events))
	}
}

// Such a delivery starts nothing, precedes the Repository, or is of another webhook or project.
func TestDeliveriesOfOthersAreNotResent(t *testing.T) {
	e := newEnv(t)
	e.missed("issue", "old")
	e.log[0].Starts = false
	e.log[1].At = e.clock.Now().Add(-2 * time.Hour)
	e.run(time.Hour)
	e.missed("other project")
	e.hooks[1].Project = 6
	e.run(time.Hour)
	if len(e.resent) != 0 {
		t.Errorf("resent: %v", e.resent)
	}
	e.hooks = e.hooks[:1]
	e.run(time.Hour)
	if len(e.resent) != 0 {
		t.Errorf("resent: %v", e.resent)
	}
	if text := e.wantCondition("Unknown WebhookNotFound"); strings.Contains(text, "chat.example.com") {
		t.Errorf("it names other webhooks: %s", text)
	}
}

func TestUnreadableLogLosesNothing(t *testing.T) {
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

// The record of an expired delivery may be gone, so it could run twice. The same holds for a
// delivery without a time that the first read found.
func TestExpiredDeliveryIsNotResent(t *testing.T) {
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
		t.Errorf("resent: %v", e.resent)
	}
}

// A webhook that GitLab pauses again and again has one message, and no resends. Afterwards the
// undelivered webhooks are resent.
func TestConditionReportsAPausedWebhook(t *testing.T) {
	e := newEnv(t)
	e.missed("a")
	message := ""
	for i := range 5 {
		e.hooks[1].State, e.hooks[1].Until = provider.HookPaused, e.clock.Now().Add(time.Minute<<i)
		e.run(time.Minute << i)
		if text := e.wantCondition("False WebhookPaused"); message != "" && text != message {
			t.Errorf("the message has changed from %q to %q", message, text)
		} else {
			message = text
		}
	}
	for _, remedy := range []string{"Settings, Webhooks, under Recent events",
		"press Test there: an answer of 2xx enables it at once", "What happens until then is not sent later"} {
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

// The message names the role.
func TestConditionReportsAMissingPermission(t *testing.T) {
	e := newEnv(t)
	e.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	e.run(24 * time.Hour)
	if text := e.wantCondition("Unknown PermissionMissing"); !strings.Contains(text, "Maintainer") ||
		!strings.Contains(text, "team/token") {
		t.Errorf("text: %s", text)
	}
	if e.statusWrites() != 1 || e.calls > 50 {
		t.Errorf("%d writes, %d calls in a day", e.statusWrites(), e.calls)
	}
	e.fails = nil
	e.run(time.Hour)
	e.wantCondition("True Called")
}

// The condition does not report it.
func TestFailingServiceIsCalledLessOften(t *testing.T) {
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

// It costs two calls in five minutes, and none without a claim or without webhook-url.
func TestQuietWebhookCostsFewCalls(t *testing.T) {
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
		t.Errorf("%d calls without a target", e.calls-before)
	}
}
