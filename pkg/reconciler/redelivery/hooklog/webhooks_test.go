// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// logOf returns the log of a webhook that leads here.
func (e *env) logOf(hook int64) *[]provider.Attempt {
	log, leadsHere := e.others[hook]
	if hook == 7 {
		return &e.log
	}
	if !leadsHere {
		e.Fatalf("webhook %d leads elsewhere", hook)
	}
	return log
}

// lead adds another webhook that leads here.
func (e *env) lead(hook int64, state provider.HookState) {
	e.hooks = append(e.hooks, provider.Hook{ID: hook, Project: 5, URL: here, State: state})
	e.others[hook] = &[]provider.Attempt{}
}

// A project may have a webhook for pushes and another one for merge requests. The deliveries of
// both are resent in turn, five a minute together, also by the next process.
func TestAllWebhooksThatLeadHereAreRead(t *testing.T) {
	e := newEnv(t)
	e.lead(8, provider.HookCalled)
	e.missed(names(12)...)
	e.missedBy(8, "other-0", "other-1")
	e.run(time.Minute)
	if !slices.Contains(e.resent, "other-0") {
		t.Errorf("one webhook has to wait for all of the other: %v", e.resent)
	}
	e.start()
	e.run(10 * time.Minute)
	e.wantOnce(append(names(12), "other-0", "other-1")...)
	for i := provider.ResendsAtOnce; i < len(e.when); i++ {
		if e.when[i].Sub(e.when[i-provider.ResendsAtOnce]) < provider.ResendsEvery {
			t.Errorf("resend %d was too early: %v", i, e.when)
		}
	}
	e.missedBy(8, "later")
	e.signal()
	e.run(time.Minute)
	e.wantOnce("later")
	e.wantCondition("")
}

// A paused webhook gets no resends.
func TestFailingWebhookDelaysNoOther(t *testing.T) {
	e := newEnv(t)
	e.lead(8, provider.HookCalled)
	e.lead(9, provider.HookPaused)
	e.receive = refuses("bad")
	e.missed("bad")
	e.missedBy(8, "a", "b")
	e.missedBy(9, "paused")
	e.run(2 * time.Minute)
	e.wantOnce("a", "b")
	if slices.Contains(e.resent, "paused") {
		t.Error("a paused webhook is called")
	}
	e.wantCondition("")
	e.hooks[len(e.hooks)-1].State = provider.HookCalled
	e.run(10 * time.Minute)
	e.wantOnce("paused")
}

// Those that GitLab calls come first.
func TestFiveWebhooksAreRead(t *testing.T) {
	e := newEnv(t)
	e.hooks[1].State = provider.HookDisabled
	for n := range int64(8) {
		e.lead(20+n, provider.HookCalled)
		e.missedBy(20+n, fmt.Sprint("m", n))
	}
	e.run(4 * time.Minute)
	e.wantOnce(names(maxHooks)...)
	if len(e.resent) != maxHooks {
		t.Errorf("resent: %v", e.resent)
	}
}

// GitLab numbers attempts when it stores them, and lists them by times that its processes took
// before. Those of a burst are in another order.
func TestConcurrentAttemptsAreAllFound(t *testing.T) {
	e := newEnv(t)
	all := names(4)
	e.missed(all...)
	e.log[0].ID, e.log[1].ID = e.log[1].ID, e.log[0].ID
	e.log[2].ID, e.log[3].ID = e.log[3].ID, e.log[2].ID
	e.run(10 * time.Minute)
	e.wantOnce(all...)
}

// The log of a busy project grows by more than one read while deliveries wait.
func TestDeliveriesBeyondOneReadAreResent(t *testing.T) {
	e := newEnv(t)
	all := names(60)
	e.missed(all...)
	e.run(6 * time.Minute)
	for n := range (maxPages + 1) * pageSize {
		e.deliver(fmt.Sprint("good", n))
	}
	e.missed("new")
	e.run(time.Hour)
	e.wantOnce(append(all, "new")...)
}

// slow is a service that takes a while for a page.
type slow struct{ *env }

func (s slow) Attempts(ctx context.Context, hook int64, failed bool, page int) ([]provider.Attempt, bool, error) {
	select {
	case <-ctx.Done():
		return nil, false, fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	case <-time.After(50 * time.Millisecond):
	}
	return s.env.Attempts(ctx, hook, failed, page)
}

// A service may be too slow to show all of its log in time.
func TestSlowServiceIsReadInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.missed("old")
		for n := range maxPages * pageSize {
			e.deliver(fmt.Sprint("good", n))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		one := newWebhook(7)
		if err := e.source.read(ctx, &memory{}, view{one, &target{repository: e.sync()}, slow{e}}); err != nil ||
			len(one.missed) != 1 {
			t.Errorf("%d are missed, %v", len(one.missed), err)
		}
	})
}

// The watch of the signals may be late.
func TestOutageOfTheAPIServerIsMadeUpForWithinAMinute(t *testing.T) {
	e := newEnv(t)
	e.run(7 * time.Minute)
	away := true
	e.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewServiceUnavailable("away")
	})
	e.missed("a", "b")
	e.run(29 * time.Minute)
	away = false
	e.run(50 * time.Second)
	e.wantOnce("a", "b")
}

// A14 with ten minutes in which neither this process nor a receiver reaches the API server. Five
// deliveries are recorded once within a minute of the end, and five more in the next.
func TestTenMinuteOutageIsMadeUpForAsFastAsGitLabAllows(t *testing.T) {
	e := newEnv(t)
	e.run(7 * time.Minute)
	away := true
	e.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewServiceUnavailable("away")
	})
	all := names(2 * provider.ResendsAtOnce)
	for _, guid := range all {
		e.missed(guid)
		e.run(time.Minute)
	}
	away = false
	e.signal()
	e.run(time.Minute)
	e.wantOnce(all[:provider.ResendsAtOnce]...)
	e.run(time.Minute + 2*time.Second)
	e.wantOnce(all...)
	e.run(time.Hour)
	e.wantOnce(all...)
}

// stuck is a service that fails to resend one attempt.
type stuck struct {
	*env
	attempt   int64
	requested *int
}

func (s stuck) Resend(ctx context.Context, hook, attempt int64) (int, error) {
	if attempt == s.attempt {
		*s.requested++
		return 0, fault.Transientf("GitUnavailable", "500")
	}
	return s.env.Resend(ctx, hook, attempt)
}

// GitLab may fail to resend a delivery, for example because it is too large. It is requested less
// and less often.
func TestFailedResendDelaysNoOtherDelivery(t *testing.T) {
	e := newEnv(t)
	requested := 0
	e.source.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return stuck{e, 1, &requested}, nil
	}
	e.missed("stuck", "b", "c")
	e.run(3 * time.Minute)
	e.wantOnce("b", "c")
	e.run(time.Hour)
	if requested < 3 || requested > 14 {
		t.Errorf("it was requested %d times in an hour", requested)
	}
	e.missed("d")
	e.run(10 * time.Minute)
	e.wantOnce("b", "c", "d")
}

func TestDeliveryThatExpiresBetweenReadsIsNotResent(t *testing.T) {
	e := newEnv(t)
	e.missed("x")
	e.reconcile()
	e.clock.Step(96 * time.Hour)
	e.run(time.Hour)
	if len(e.resent) != 0 {
		t.Errorf("resent: %v", e.resent)
	}
	e.wantEvents(redelivery.ReasonGivenUp)
}

// A delivery that was recorded without a response may run twice when its stub is gone.
func TestResendsDoNotMakeADeliveryYounger(t *testing.T) {
	e := newEnv(t)
	e.missed("x")
	e.recorded["x"] = 1
	e.receive = func(string) int { return 0 }
	for range 4 { // days
		e.run(24 * time.Hour)
	}
	e.missed("y")
	e.receive = nil
	e.signal()
	e.run(2 * time.Hour)
	e.wantOnce("x", "y")
	e.start()
	e.run(2 * time.Hour)
	e.wantOnce("x", "y")
	if len(e.events.Events) != 1 {
		t.Errorf("the Repository gets %d Events", len(e.events.Events))
	}
}
