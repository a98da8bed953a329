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
)

// logOf is the log of a webhook that leads here.
func (w *world) logOf(hook int64) *[]provider.Attempt {
	log, leadsHere := w.others[hook]
	if hook == 7 {
		return &w.log
	}
	if !leadsHere {
		w.Fatalf("webhook %d leads elsewhere", hook)
	}
	return log
}

// lead makes another webhook that leads here.
func (w *world) lead(hook int64, state provider.HookState) {
	w.hooks = append(w.hooks, provider.Hook{ID: hook, Project: 5, URL: here, State: state})
	w.others[hook] = &[]provider.Attempt{}
}

// A project may have a webhook for pushes and another one for merge requests, and both lead here.
// What any of them missed is sent again, in turn, five a minute of all, and the next process reads
// all of them, too.
func TestEachWebhookThatLeadsHereIsRead(t *testing.T) {
	w := newWorld(t)
	w.lead(8, provider.HookCalled)
	w.missed(names(12)...)
	w.missedBy(8, "other-0", "other-1")
	w.run(time.Minute)
	if !slices.Contains(w.resent, "other-0") {
		t.Errorf("one webhook has to wait for all of the other: %v", w.resent)
	}
	w.start()
	w.run(10 * time.Minute)
	w.wantOnce(append(names(12), "other-0", "other-1")...)
	for i := provider.ResendsAtOnce; i < len(w.when); i++ {
		if w.when[i].Sub(w.when[i-provider.ResendsAtOnce]) < provider.ResendsEvery {
			t.Errorf("resend %d was too early: %v", i, w.when)
		}
	}
	w.missedBy(8, "later")
	w.heard()
	w.run(time.Minute)
	w.wantOnce("later")
	w.wantCondition("")
}

// What fails at one webhook does not hold up another one, and one that is paused is sent nothing.
func TestWebhooksDoNotHoldUpEachOther(t *testing.T) {
	w := newWorld(t)
	w.lead(8, provider.HookCalled)
	w.lead(9, provider.HookPaused)
	w.receive = refuses("bad")
	w.missed("bad")
	w.missedBy(8, "a", "b")
	w.missedBy(9, "paused")
	w.run(2 * time.Minute)
	w.wantOnce("a", "b")
	if slices.Contains(w.resent, "paused") {
		t.Error("a paused webhook is called")
	}
	w.wantCondition("")
	w.hooks[len(w.hooks)-1].State = provider.HookCalled
	w.run(10 * time.Minute)
	w.wantOnce("paused")
}

// However many lead here, one look reads five of them, those that are called before others.
func TestManyWebhooksAreBounded(t *testing.T) {
	w := newWorld(t)
	w.hooks[1].State = provider.HookDisabled
	for n := range int64(8) {
		w.lead(20+n, provider.HookCalled)
		w.missedBy(20+n, fmt.Sprint("m", n))
	}
	w.run(4 * time.Minute)
	w.wantOnce(names(maxHooks)...)
	if len(w.resent) != maxHooks {
		t.Errorf("sent again: %v", w.resent)
	}
}

// GitLab numbers attempts when they are written down, and lists them by the times that its
// processes took before that. Those of a burst are in another order, and each is seen.
func TestAttemptsThatWereMadeTogether(t *testing.T) {
	w := newWorld(t)
	all := names(4)
	w.missed(all...)
	w.log[0].ID, w.log[1].ID = w.log[1].ID, w.log[0].ID
	w.log[2].ID, w.log[3].ID = w.log[3].ID, w.log[2].ID
	w.run(10 * time.Minute)
	w.wantOnce(all...)
}

// Of a busy project's log less is read than what has happened since something was missed. What
// waits for its turn is sent again all the same.
func TestWhatIsOlderThanWhatIsRead(t *testing.T) {
	w := newWorld(t)
	all := names(60)
	w.missed(all...)
	w.run(6 * time.Minute)
	for n := range (maxPages + 1) * pageSize {
		w.deliver(fmt.Sprint("good", n))
	}
	w.missed("new")
	w.run(time.Hour)
	w.wantOnce(append(all, "new")...)
}

// slow is a service that takes a while for a page.
type slow struct{ *world }

func (s slow) Attempts(ctx context.Context, hook int64, failed bool, page int) ([]provider.Attempt, bool, error) {
	select {
	case <-ctx.Done():
		return nil, false, fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	case <-time.After(50 * time.Millisecond):
	}
	return s.world.Attempts(ctx, hook, failed, page)
}

// A service that is too slow to be asked for all of its log in time has missed deliveries sent
// again nevertheless.
func TestASlowService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.missed("old")
		for n := range maxPages * pageSize {
			w.deliver(fmt.Sprint("good", n))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		one := newLog(7)
		if err := w.process.read(ctx, view{&one, &target{repository: w.sync()}, slow{w}}); err != nil || len(one.missed) != 1 {
			t.Errorf("%d are missed, %v", len(one.missed), err)
		}
	})
}

// After an outage of the API server what was missed is sent again within a minute, also if the
// watch that tells of receivers is late.
func TestTheAPIServerWasAway(t *testing.T) {
	w := newWorld(t)
	w.run(7 * time.Minute)
	away := true
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewServiceUnavailable("away")
	})
	w.missed("a", "b")
	w.run(29 * time.Minute)
	away = false
	w.run(50 * time.Second)
	w.wantOnce("a", "b")
}

// A14 with ten minutes in which neither this process nor a receiver reaches the API server: as many
// as GitLab sends again in a minute are recorded, once each, within a minute of the end, and as
// many more in the next.
func TestTenMinutesAreMadeUpForAsFastAsGitLabSends(t *testing.T) {
	w := newWorld(t)
	w.run(7 * time.Minute)
	away := true
	w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewServiceUnavailable("away")
	})
	all := names(2 * provider.ResendsAtOnce)
	for _, guid := range all {
		w.missed(guid)
		w.run(time.Minute)
	}
	away = false
	w.heard()
	w.run(time.Minute)
	w.wantOnce(all[:provider.ResendsAtOnce]...)
	w.run(time.Minute + 2*time.Second)
	w.wantOnce(all...)
	w.run(time.Hour)
	w.wantOnce(all...)
}

// stuck is a service that fails to send one attempt again.
type stuck struct {
	*world
	attempt int64
	asked   *int
}

func (s stuck) Resend(ctx context.Context, hook, attempt int64) (int, error) {
	if attempt == s.attempt {
		*s.asked++
		return 0, fault.Transientf("GitUnavailable", "500")
	}
	return s.world.Resend(ctx, hook, attempt)
}

// A delivery that GitLab fails to send again, for example because it is too large, holds up no
// other one, and is asked for less and less.
func TestADeliveryThatIsNotSentAgainHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.process.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return stuck{w, 1, &asked}, nil
	}
	w.missed("stuck", "b", "c")
	w.run(3 * time.Minute)
	w.wantOnce("b", "c")
	w.run(time.Hour)
	if asked < 3 || asked > 14 {
		t.Errorf("it was asked for %d times in an hour", asked)
	}
	w.missed("d")
	w.run(10 * time.Minute)
	w.wantOnce("b", "c", "d")
}

// What has grown old since the last look is not sent again either.
func TestWhatGrowsOldBetweenLooks(t *testing.T) {
	w := newWorld(t)
	w.missed("x")
	w.reconcile()
	w.clock.Step(96 * time.Hour)
	w.run(time.Hour)
	if len(w.resent) != 0 {
		t.Errorf("sent again: %v", w.resent)
	}
	w.wantEvents(reasonGivenUp)
}

// What was recorded although nobody answered may run twice when its stub is gone, however often it
// was sent again meanwhile.
func TestWhatIsSentAgainGrowsOld(t *testing.T) {
	w := newWorld(t)
	w.missed("x")
	w.recorded["x"] = 1
	w.receive = func(string) int { return 0 }
	for range 4 { // days
		w.run(24 * time.Hour)
	}
	w.missed("y")
	w.receive = nil
	w.heard()
	w.run(2 * time.Hour)
	w.wantOnce("x", "y")
	w.start()
	w.run(2 * time.Hour)
	w.wantOnce("x", "y")
	if len(w.events.Events) != 1 {
		t.Errorf("the Repository is told %d times", len(w.events.Events))
	}
}
