// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

var errLater = apierrors.NewTooManyRequests("the server is too busy", int(limit/time.Second))

// hour is an outage in which every step waits for something else: patches are denied, a second run
// for a time that the API server named, one host's reports and tokens for a slot, the other's
// reports for a rate limit, a renewal for the API server, and one event for the recheck of its
// check.
type hour struct {
	*env
	queue *queue
	over  bool
	calls map[string]int // to the API server and to the Git service since the outage began
}

const (
	busyHost    = "git.example"
	limitedHost = "other.example"
	limit       = time.Minute
)

func newHour(t *testing.T) *hour {
	w := newEnv(t, helloFile("ends"), helloFile("waits"), helloFile("goes-on"), helloFile("late"))
	w.git.reopens = true
	h := &hour{env: w, calls: map[string]int{}}
	w.add("push-2", busyHost)
	w.add("push-3", limitedHost)
	w.add("push-4", limitedHost)
	lost := map[string]bool{}
	w.asked, w.git.asked = h.apiServer, func(check status.Check) error {
		if check.Conclusion == "" || lost[check.Key] {
			return nil
		}
		lost[check.Key] = true // and so it is to be looked up once more: it may land late
		f := fault.Transientf(fault.ReasonTimeout, "no answer in time")
		f.Unknown = true
		return f
	}
	h.queue = newQueue(w)
	return h
}

func (h *hour) apiServer(action clienttesting.Action) error {
	call := action.GetVerb() + " " + action.GetResource().Resource
	name := ""
	switch a := action.(type) {
	case interface{ GetObject() k8sruntime.Object }:
		if object, ok := a.GetObject().(metav1.Object); ok {
			name = object.GetName()
		}
	case interface{ GetName() string }:
		name = a.GetName()
	}
	h.calls[call+" "+name]++
	switch {
	case h.over:
	case call == "patch pipelineruns":
		return errDenied
	case call == "create pipelineruns" && strings.HasPrefix(name, "waits-"):
		return errLater
	case call == "patch secrets" && h.renewed(name):
		return errRefused
	}
	return nil
}

// renewed reports whether a secret belongs to an unfinished run, and counts its renewal.
func (h *hour) renewed(secret string) bool {
	for _, event := range h.all() {
		for _, run := range h.statusOf(event).Runs {
			if run.Secret == secret && strings.HasPrefix(run.Name, "goes-on-") {
				h.calls["renew "+run.Name]++
				return true
			}
		}
	}
	return false
}

func (h *hour) git(check status.Check) error {
	for _, event := range h.all() {
		for _, run := range h.statusOf(event).Runs {
			if run.Name == check.Key {
				h.calls["put "+event]++ // one a minute, whichever check it is: the next one would meet the same limit
			}
		}
	}
	if !h.over {
		return fault.Throttledf(fault.ReasonRateLimited, limit, "waiting for the Git service's rate limit to be lifted")
	}
	return nil
}

// end finishes the runs of a pipeline and wakes their events, like the informer.
func (h *hour) end(prefix string) {
	h.t.Helper()
	for _, run := range h.runs() {
		if run.IsDone() || !strings.HasPrefix(run.Name, prefix) {
			continue
		}
		now := metav1.NewTime(h.clock.Now())
		run.Status.CompletionTime = &now
		run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, Reason: "Done"})
		h.must(h.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
		h.queue.after(run.Labels[plumbline.EventLabel], 0)
	}
}

func (h *hour) pass(d time.Duration) { h.queue.run(h.clock.Now().Add(d)) }

func (h *hour) all() []string { return []string{"push-1", "push-2", "push-3", "push-4"} }

// within requires that something becomes true for every event that is named, in that time.
func (h *hour) within(what string, bound time.Duration, done func(event string) bool) {
	h.t.Helper()
	began := h.clock.Now()
	for {
		missing := slices.DeleteFunc(h.all(), done)
		took := h.clock.Since(began)
		if len(missing) == 0 {
			h.t.Logf("%s after %v", what, took)
			return
		}
		if took > bound {
			h.t.Fatalf("after %v, %v: not %s", took, missing, what)
		}
		h.pass(time.Second)
	}
}

func (h *hour) runOf(event, prefix string) *pipelinev1.PipelineRun {
	for _, run := range h.runs() {
		if run.Labels[plumbline.EventLabel] == event && strings.HasPrefix(run.Name, prefix) {
			return &run
		}
	}
	return nil
}

func (h *hour) verdict(event, prefix string) bool {
	run := h.runOf(event, prefix)
	return run != nil && slices.ContainsFunc(slices.Collect(maps.Values(h.env.git.checks)), func(c status.Check) bool {
		return c.Key == run.Name && c.Conclusion == status.Success
	})
}

func (h *hour) statusOf(event string) *v1alpha1.GitEventStatus {
	for _, e := range h.events() {
		if e.Name == event {
			return &e.Status
		}
	}
	h.t.Fatalf("no event %s", event)
	return nil
}

// rechecks counts the checks of an event that must be looked up once more.
func (h *hour) rechecks(event string) int {
	n := 0
	for _, check := range h.statusOf(event).Checks {
		if check.Concluded && check.RecheckAt != nil {
			n++
		}
	}
	return n
}

// wantPaces requires how often each call was made in the hour, by its own wait.
func (h *hour) wantPaces() {
	h.t.Helper()
	for _, event := range h.all() {
		limited := event == "push-3" || event == "push-4"
		for _, c := range []struct {
			call, run   string
			least, most int
		}{
			{"patch pipelineruns", "ends", 5, 25},
			{"patch pipelineruns", "goes-on", 5, 25},
			{"create pipelineruns", "waits", 59, 61},
			// the run is to own its secret first, which is refused as all patches are: every two
			// minutes at the latest
			{"renew", "goes-on", 4, 35},
			{"put", "", 59, 61},
		} {
			call := c.call + " " + h.name(event, c.run)
			if c.run == "" {
				call = c.call + " " + event
			}
			if !limited && c.call != "patch pipelineruns" && c.call != "renew" {
				c.least, c.most = 0, 0 // without a slot nothing is asked that needs the Git service
			}
			if got := h.calls[call]; got < c.least || got > c.most {
				h.t.Errorf("%s: %d times %q, want %d to %d", event, got, call, c.least, c.most)
			}
		}
		if got := h.calls["update gitevents "+event]; got > 250 {
			h.t.Errorf("%s: its status was written %d times", event, got)
		}
		if got := h.calls["get gitevents "+event]; limited && got > 400 || got > 3700 {
			h.t.Errorf("%s: reconciled %d times", event, got)
		}
	}
}

// name is the name of a planned run.
func (h *hour) name(event, pipeline string) string {
	for _, run := range h.statusOf(event).Runs {
		if strings.HasPrefix(run.Name, pipeline+"-") {
			return run.Name
		}
	}
	return ""
}

// In an outage of an hour all steps of several events wait at once, each for something else. None
// delays another, and none is retried early because of another.
func TestStepsOfManyEventsDoNotDelayEachOther(t *testing.T) {
	t.Parallel()
	h := newHour(t)
	h.pass(30 * time.Second)
	h.end("late-")
	h.pass(30 * time.Second) // all are created and reported, but for the patches and the second run
	for _, event := range h.all() {
		if h.runOf(event, "goes-on-") == nil || h.runOf(event, "waits-") != nil || !h.verdict(event, "late-") ||
			h.rechecks(event) != 1 {
			t.Fatalf("%s did not begin as it should: %+v", event, h.statusOf(event))
		}
	}
	// by somebody who hangs
	free, _ := h.process().queue.AcquireService(fairqueue.Request{Namespace: "other", Host: busyHost})
	h.env.git.asked = h.git
	h.calls = map[string]int{}
	h.pass(50 * time.Minute)
	h.end("ends-")
	h.pass(10 * time.Minute)
	h.wantPaces()

	h.over = true
	free()
	end := h.clock.Now()
	h.within("the verdict is accepted", limit+2*time.Second, func(event string) bool { return h.verdict(event, "ends-") })
	h.within("its late check is looked up", end.Add(limit+2*time.Second).Sub(h.clock.Now()),
		func(event string) bool { return h.rechecks(event) == 0 })
	h.within("the run that waited for its quota is created", end.Add(limit+2*time.Second).Sub(h.clock.Now()),
		func(event string) bool { return h.runOf(event, "waits-") != nil })
	h.within("every patch is made", 1000*time.Second, func(event string) bool {
		return h.statusOf(event).GetCondition(v1alpha1.GitEventAnnotated).IsTrue()
	})
	h.end("")
	h.within("everything is settled", time.Minute,
		func(event string) bool { return h.statusOf(event).Phase == v1alpha1.PhaseSettled })
	if r := h.process(); len(r.queue.InUse()) != 0 || r.credentials.Waiting() != 0 || r.state.Timers.Len() != 0 {
		t.Errorf("remembers slots %v, %d held events and %d failing ones", r.queue.InUse(), r.credentials.Waiting(),
			r.state.Timers.Len())
	}
}
