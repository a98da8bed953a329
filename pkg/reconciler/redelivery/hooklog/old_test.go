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
)

// givenUp takes the Kubernetes Events, and returns which deliveries they give up.
func (w *world) givenUp() (guids []string) {
	for len(w.events.Events) > 0 {
		if told := strings.Fields(<-w.events.Events); told[1] == reasonGivenUp {
			guids = append(guids, told[3])
		}
	}
	return guids
}

// What grows old is given up and told once, also if no process knew of it meanwhile. What has
// succeeded since is not, nor what came before the Repository.
func TestWhatGrowsOldUnseenIsGivenUp(t *testing.T) {
	for name, grow := range map[string]func(w *world){
		"while the webhook was paused": func(w *world) {
			w.hooks[1].State = provider.HookPaused
			w.run(96 * time.Hour)
			w.hooks[1].State = provider.HookCalled
		},
		"while no process ran": func(w *world) {
			w.clock.Step(96 * time.Hour)
			w.start()
		},
		"and could not be told at first": func(w *world) {
			w.receive = refuses("x")
			w.run(70 * time.Hour)
			failed := false
			w.kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				fails := !failed
				failed = true
				return fails, nil, apierrors.NewServiceUnavailable("away")
			})
			w.run(26 * time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.missed("before", "x", "by-hand", "and-by-hand")
			w.log[0].At = w.clock.Now().Add(-2 * time.Hour)
			w.deliver("by-hand")
			w.clock.Step(time.Hour)
			w.deliver("and-by-hand")
			grow(w)
			w.run(time.Hour)
			w.start()
			w.run(time.Hour)
			if told := w.givenUp(); !slices.Equal(told, []string{"x"}) {
				t.Errorf("told: %v", told)
			}
		})
	}
}

// Of many as many are told as are remembered, so that the next process does not tell them again.
// Whether one has succeeded that is older than all that is read cannot be seen, and it is not told.
func TestManyThatGrewOldUnseen(t *testing.T) {
	w := newWorld(t)
	w.missed(names(maxGivenUp + 10)...)
	w.clock.Step(96 * time.Hour)
	w.start()
	w.run(time.Hour)
	if told := w.givenUp(); len(told) != maxGivenUp || !slices.Contains(told, fmt.Sprint("m", maxGivenUp+9)) {
		t.Errorf("told: %v", told)
	}
	w.start()
	w.run(time.Hour)
	if told := w.givenUp(); len(told) != 0 {
		t.Errorf("told again: %v", told)
	}
	w = newWorld(t)
	w.missed("x")
	for n := range maxPages * pageSize {
		w.deliver(fmt.Sprint("good", n))
	}
	w.clock.Step(96 * time.Hour)
	w.run(time.Hour)
	if told := w.givenUp(); len(told) != 0 {
		t.Errorf("told what may have succeeded: %v", told)
	}
}

// forgetful is a service that has other failures each time that it is asked, and does not answer
// for the rest of its log.
type forgetful struct {
	*world
	asked *int
}

func (f forgetful) Attempts(_ context.Context, _ int64, failed bool, _ int) ([]provider.Attempt, bool, error) {
	if !failed {
		return nil, false, fault.Transientf("GitUnavailable", "500")
	}
	var page []provider.Attempt
	for range pageSize {
		*f.asked++
		page = append(page, provider.Attempt{ID: int64(*f.asked), GUID: fmt.Sprint(*f.asked), At: f.clock.Now().Add(-96 * time.Hour), Starts: true})
	}
	return page, true, nil
}

// A tenant may have the server: what it makes a process remember is bounded.
func TestWhatIsRememberedOfOldOnesIsBounded(t *testing.T) {
	w := newWorld(t)
	w.clock.Step(10 * 24 * time.Hour)
	asked := 0
	w.process.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return forgetful{w, &asked}, nil
	}
	w.run(12 * time.Hour)
	remembered := 0
	for _, m := range w.process.known {
		for _, l := range m.logs.of {
			remembered = max(remembered, len(l.unsure), len(l.over))
		}
	}
	if asked <= maxOver || remembered == 0 || remembered > maxOver {
		t.Errorf("of %d old deliveries %d are remembered", asked, remembered)
	}
}

// endless is a service that has other failures each time that it is asked, tells no time of them,
// and sends none again.
type endless struct {
	*world
	asked *int
}

func (e endless) Attempts(context.Context, int64, bool, int) ([]provider.Attempt, bool, error) {
	var page []provider.Attempt
	for range pageSize {
		*e.asked++
		page = append(page, provider.Attempt{ID: int64(*e.asked), GUID: fmt.Sprint(*e.asked), Status: 503, Starts: true})
	}
	return page, true, nil
}

func (endless) Resend(context.Context, int64, int64) (int, error) {
	return 0, fault.Transientf("GitUnavailable", "500")
}

func TestWhatIsRememberedOfMissedOnesIsBounded(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.process.service.Hooks = func(string, v1alpha1.Project, provider.Credentials) (provider.HookLog, error) {
		return endless{w, &asked}, nil
	}
	w.run(time.Hour)
	remembered := 0
	for _, m := range w.process.known {
		for _, l := range m.logs.of {
			remembered = max(remembered, len(l.missed))
		}
	}
	if asked <= 2*maxMissed || remembered == 0 || remembered > maxMissed {
		t.Errorf("of %d missed deliveries %d are remembered", asked, remembered)
	}
}

// Many that grow old while nobody answers end in one look, whatever room there is for their
// attempts in what one look reads.
func TestManyThatGrowOldBehindOthers(t *testing.T) {
	w := newWorld(t)
	w.receive = func(string) int { return 0 }
	for _, name := range names(100) {
		w.deliver(name)
	}
	w.run(6 * time.Minute)
	for n := range maxPages*pageSize + 50 {
		w.deliver(fmt.Sprint("later", n))
		w.clock.Step(5 * time.Minute)
	}
	calls := w.calls
	w.run(time.Hour)
	if calls = w.calls - calls; calls > 1000 {
		t.Errorf("%d calls in an hour", calls)
	}
}

// What is given up is not sent again when its attempts are read once more for the sake of another
// delivery.
func TestWhatIsGivenUpStaysGivenUp(t *testing.T) {
	w := newWorld(t)
	w.receive = refuses("bad-1", "bad-2", "bad-3")
	for i := range 300 {
		if i%6 == 0 && i < 18 {
			w.deliver(fmt.Sprint("bad-", 1+i/6))
		}
		w.deliver(fmt.Sprint("good", i))
		w.run(10 * time.Minute)
	}
	tries := map[string]int{}
	for _, guid := range w.resent {
		tries[guid]++
	}
	for guid, n := range tries {
		if n > maxRefused+1 {
			t.Errorf("%s is sent again %d times", guid, n)
		}
	}
	if len(w.events.Events) != 3 {
		t.Errorf("%d are told", len(w.events.Events))
	}
}
