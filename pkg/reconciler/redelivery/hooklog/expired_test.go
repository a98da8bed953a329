// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// givenUp takes the Kubernetes Events, and returns which deliveries they give up.
func (e *env) givenUp() (guids []string) {
	for len(e.events.Events) > 0 {
		if text := strings.Fields(<-e.events.Events); text[1] == redelivery.ReasonGivenUp {
			guids = append(guids, text[3])
		}
	}
	return guids
}

// A delivery that grows too old is given up once, also if no process knew of it meanwhile. One that
// has succeeded since is not, nor one from before the Repository.
func TestDeliveryThatExpiresUnseenIsGivenUp(t *testing.T) {
	for name, grow := range map[string]func(e *env){
		"while the webhook was paused": func(e *env) {
			e.hooks[1].State = provider.HookPaused
			e.run(96 * time.Hour)
			e.hooks[1].State = provider.HookCalled
		},
		"while no process ran": func(e *env) {
			e.clock.Step(96 * time.Hour)
			e.start()
		},
		"and could not be reported at first": func(e *env) {
			e.receive = refuses("x")
			e.run(70 * time.Hour)
			failed := false
			e.kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				fails := !failed
				failed = true
				return fails, nil, apierrors.NewServiceUnavailable("away")
			})
			e.run(26 * time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.missed("before", "x", "by-hand", "and-by-hand")
			e.log[0].At = e.clock.Now().Add(-2 * time.Hour)
			e.deliver("by-hand")
			e.clock.Step(time.Hour)
			e.deliver("and-by-hand")
			grow(e)
			e.run(time.Hour)
			e.start()
			e.run(time.Hour)
			if text := e.givenUp(); !slices.Equal(text, []string{"x"}) {
				t.Errorf("text: %v", text)
			}
		})
	}
}

// Of many expired deliveries as many are reported as can be stored, so that the next process does
// not report them again. One that is older than what was read may have succeeded, and is not
// reported.
func TestExpiredDeliveriesAreReportedAsFarAsTheyAreStored(t *testing.T) {
	e := newEnv(t)
	e.missed(names(maxGivenUp + 10)...)
	e.clock.Step(96 * time.Hour)
	e.start()
	e.run(time.Hour)
	if text := e.givenUp(); len(text) != maxGivenUp || !slices.Contains(text, fmt.Sprint("m", maxGivenUp+9)) {
		t.Errorf("text: %v", text)
	}
	e.start()
	e.run(time.Hour)
	if text := e.givenUp(); len(text) != 0 {
		t.Errorf("reported again: %v", text)
	}
	e = newEnv(t)
	e.missed("x")
	for n := range maxPages * pageSize {
		e.deliver(fmt.Sprint("good", n))
	}
	e.clock.Step(96 * time.Hour)
	e.run(time.Hour)
	if text := e.givenUp(); len(text) != 0 {
		t.Errorf("reported what may have succeeded: %v", text)
	}
}

// forgetful is a service that has other failures at each call, and never shows the rest of its log.
type forgetful struct {
	*env
	requested *int
}

func (f forgetful) Attempts(_ context.Context, _ int64, failed bool, _ int) ([]provider.Attempt, bool, error) {
	if !failed {
		return nil, false, fault.Transientf("GitUnavailable", "500")
	}
	var page []provider.Attempt
	for range pageSize {
		*f.requested++
		page = append(page, provider.Attempt{
			ID: int64(*f.requested), GUID: fmt.Sprint(*f.requested), At: f.clock.Now().Add(-96 * time.Hour), Starts: true,
		})
	}
	return page, true, nil
}

// A user may run the server.
func TestMemoryOfExpiredDeliveriesIsBounded(t *testing.T) {
	e := newEnv(t)
	e.clock.Step(10 * 24 * time.Hour)
	requested := 0
	e.source.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return forgetful{e, &requested}, nil
	}
	e.run(12 * time.Hour)
	remembered := 0
	for _, m := range e.source.known {
		for _, l := range m.hooks.of {
			remembered = max(remembered, len(l.unsure), len(l.over))
		}
	}
	if requested <= maxExpired || remembered == 0 || remembered > maxExpired {
		t.Errorf("of %d old deliveries %d are remembered", requested, remembered)
	}
}

// endless is a service that has other failures without times at each call, and resends none.
type endless struct {
	*env
	requested *int
}

func (e endless) Attempts(context.Context, int64, bool, int) ([]provider.Attempt, bool, error) {
	var page []provider.Attempt
	for range pageSize {
		*e.requested++
		page = append(page, provider.Attempt{
			ID: int64(*e.requested), GUID: fmt.Sprint(*e.requested), Status: 503, Starts: true,
		})
	}
	return page, true, nil
}

func (endless) Resend(context.Context, int64, int64) (int, error) {
	return 0, fault.Transientf("GitUnavailable", "500")
}

func TestMemoryOfUndeliveredWebhooksIsBounded(t *testing.T) {
	e := newEnv(t)
	requested := 0
	e.source.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return endless{e, &requested}, nil
	}
	e.run(time.Hour)
	remembered := 0
	for _, m := range e.source.known {
		for _, l := range m.hooks.of {
			remembered = max(remembered, len(l.missed))
		}
	}
	if requested <= 2*maxMissed || remembered == 0 || remembered > maxMissed {
		t.Errorf("of %d missed deliveries %d are remembered", requested, remembered)
	}
}

// Many deliveries expire while no receiver responds, and their attempts fill more than one read.
func TestDeliveriesThatExpireTogetherCostFewCalls(t *testing.T) {
	e := newEnv(t)
	e.receive = func(string) int { return 0 }
	for _, name := range names(100) {
		e.deliver(name)
	}
	e.run(6 * time.Minute)
	for n := range maxPages*pageSize + 50 {
		e.deliver(fmt.Sprint("later", n))
		e.clock.Step(5 * time.Minute)
	}
	calls := e.calls
	e.run(time.Hour)
	if calls = e.calls - calls; calls > 1000 {
		t.Errorf("%d calls in an hour", calls)
	}
}

// The attempts of a delivery that is given up are read again together with those of another one.
func TestGivenUpDeliveryIsNotResent(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("bad-1", "bad-2", "bad-3")
	for i := range 300 {
		if i%6 == 0 && i < 18 {
			e.deliver(fmt.Sprint("bad-", 1+i/6))
		}
		e.deliver(fmt.Sprint("good", i))
		e.run(10 * time.Minute)
	}
	tries := map[string]int{}
	for _, guid := range e.resent {
		tries[guid]++
	}
	for guid, n := range tries {
		if n > redelivery.MaxRefused+1 {
			t.Errorf("%s is sent again %d times", guid, n)
		}
	}
	if len(e.events.Events) != 3 {
		t.Errorf("%d are reported", len(e.events.Events))
	}
}

// Where GitLab reports no times, a failure from before the first read may be so old that it would
// run twice.
func TestDeliveryWithoutATimeIsNotResentAfterAPause(t *testing.T) {
	e := newEnv(t)
	e.missed("old")
	e.log[0].At = time.Time{}
	e.run(20 * time.Minute)
	e.hooks[1].State, e.hooks[1].Until = provider.HookPaused, e.clock.Now().Add(10*time.Minute)
	e.run(10 * time.Minute)
	e.hooks[1].State, e.hooks[1].Until = provider.HookCalled, time.Time{}
	e.missed("new")
	e.log[1].At = time.Time{}
	e.run(20 * time.Minute)
	e.wantOnce("new")
	if len(e.resent) != 1 {
		t.Errorf("resent: %v", e.resent)
	}
}

// What was undelivered before waits until the token may read the log again.
func TestLostPermissionCostsFewCalls(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("a")
	e.missed("a")
	e.run(time.Minute)
	e.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	e.calls = 0
	e.run(4 * time.Hour)
	if e.calls > 20 {
		t.Errorf("%d calls in four hours", e.calls)
	}
	e.fails, e.receive = nil, nil
	e.run(time.Hour)
	e.wantOnce("a")
}

func TestOtherProjectOfTheSameNameGetsNoResends(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("a")
	e.missed("a")
	e.run(time.Minute)
	before := len(e.resent)
	for i := range e.hooks {
		e.hooks[i].Project = 6
	}
	e.run(4 * time.Hour)
	if before == 0 || len(e.resent) > before {
		t.Errorf("sent again: %d times, and %d times when another project had the name", before, len(e.resent)-before)
	}
}
