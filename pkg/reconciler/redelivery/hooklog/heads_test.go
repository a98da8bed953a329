// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func commit(digit string) string { return strings.Repeat(digit, 40) }

// Heads implements provider.HookLog.
func (w *world) Heads(_ context.Context, since time.Time) (heads []provider.Head, err error) {
	w.calls++
	for _, head := range w.heads {
		if head.Pull == 0 || !w.moved[head.Pull].Before(since) {
			heads = append(heads, head)
		}
	}
	return heads, w.noHeads
}

// Moved implements provider.HookLog.
func (w *world) Moved(_ context.Context, pull int64) (time.Time, error) {
	w.calls++
	return w.moved[pull], nil
}

// move moves the default branch (0) or a pull request to a commit; nobody is told.
func (w *world) move(pull int64, sha string) {
	if w.moved == nil {
		w.moved = map[int64]time.Time{}
	}
	head := provider.Head{Pull: pull, Branch: "main", SHA: sha, At: w.clock.Now()}
	if pull != 0 {
		head.At = time.Time{}
		w.moved[pull] = w.clock.Now()
	}
	for i := range w.heads {
		if w.heads[i].Pull == pull {
			w.heads[i] = head
			return
		}
	}
	w.heads = append(w.heads, head)
}

// record writes down an event of the default branch (0) or a pull request.
func (w *world) record(pull int64, sha string, change ...func(*v1alpha1.GitEvent)) {
	w.Helper()
	e := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{SHA: sha, BaseRef: "refs/heads/main"}}
	e.Spec.Repository = v1alpha1.RepositoryReference{Namespace: "team", UID: "before", URL: "https://gitlab.com/acme/team/app"}
	if pull != 0 {
		e.Spec.BaseRef, e.Spec.PullRequest = "main", &v1alpha1.PullRequest{Number: pull}
	}
	for _, one := range change {
		one(e)
	}
	e.ObjectMeta = metav1.ObjectMeta{
		Namespace: system, Name: fmt.Sprintf("e-%d-%.8s", pull, sha), Labels: map[string]string{plumbline.SubjectLabel: e.Spec.Subject()},
		CreationTimestamp: metav1.NewTime(w.clock.Now()),
	}
	if err := w.client.Tracker().Add(e); err != nil {
		w.Fatal(err)
	}
}

// pause has the webhook paused for so long.
func (w *world) pause(long time.Duration) {
	w.hooks[1].State, w.hooks[1].Until = provider.HookPaused, w.clock.Now().Add(long)
	w.run(long)
	w.hooks[1].State, w.hooks[1].Until = provider.HookCalled, time.Time{}
}

// A15: what GitLab did not send while it had paused the webhook is in no log. The condition names
// the heads that moved meanwhile, with what to do; the Repository has one Kubernetes Event of it,
// whatever is restarted. With their records the condition goes.
func TestA15WhatAPausedWebhookMissedIsNamed(t *testing.T) {
	w := newWorld(t)
	w.move(0, commit("a"))
	w.record(0, commit("a"))
	w.move(7, commit("b"))
	w.record(7, commit("b"))
	w.move(8, commit("c")) // is not pushed to meanwhile
	w.record(8, commit("c"))
	w.run(10 * time.Minute)
	w.wantCondition("")
	w.move(7, commit("d"))
	w.move(0, commit("e"))
	w.pause(20 * time.Minute)
	w.run(10 * time.Minute)
	told := w.wantCondition("False HeadsNotRecorded")
	for _, says := range []string{"branch main at eeeeeeee, merge request !7 at dddddddd.", "Push to them again", "/test"} {
		if !strings.Contains(told, says) {
			t.Errorf("it does not say %q: %s", says, told)
		}
	}
	if strings.Contains(told, "!8") {
		t.Errorf("it names what is recorded: %s", told)
	}
	writes := w.statusWrites()
	w.receive = refuses("x")
	w.deliver("x") // keeps the next comparison waiting
	w.run(20 * time.Minute)
	w.receive = nil
	w.start()
	w.run(time.Hour)
	if state := w.process.metrics.states[key()]; state != corev1.ConditionTrue {
		t.Errorf("the metric says that the webhook is called: %s", state)
	}
	w.start()
	w.run(time.Hour)
	if got := w.statusWrites(); got != writes {
		t.Errorf("the same was written %d times more", got-writes)
	}
	w.record(0, commit("e"))
	w.run(10 * time.Minute)
	if told := w.wantCondition("False HeadsNotRecorded"); strings.Contains(told, "main") || !strings.Contains(told, "!7") {
		t.Errorf("with the record of one of two: %s", told)
	}
	w.record(7, "", func(e *v1alpha1.GitEvent) { // a comment /test, that is over
		e.Spec.Comment, e.Status.Phase, e.Status.Plan = &v1alpha1.Comment{ID: 1}, v1alpha1.PhaseSettled, &v1alpha1.Plan{HeadSHA: commit("d")}
	})
	w.run(10 * time.Minute)
	w.wantCondition("True Called")
	w.wantEvents("WebhookPaused", "HeadsNotRecorded", "Called")
}

// wantEvents requires that the Repository has had these Kubernetes Events, by their reasons.
func (w *world) wantEvents(reasons ...string) {
	w.Helper()
	if len(w.events.Events) != len(reasons) {
		w.Fatalf("%d events, want %v", len(w.events.Events), reasons)
	}
	for _, reason := range reasons {
		if told := <-w.events.Events; strings.Fields(told)[1] != reason {
			w.Errorf("told %q, want %s", told, reason)
		}
	}
}

// What nothing is amiss with is not named.
func TestHeadsThatNeedNothing(t *testing.T) {
	for name, c := range map[string]func(w *world){
		"moved before the Repository was made": func(w *world) {
			w.move(0, commit("a"))
			w.move(7, commit("b"))
			w.heads[0].At, w.moved[7] = w.clock.Now().Add(-2*time.Hour), w.clock.Now().Add(-2*time.Hour)
		},
		"so old that the record may be gone": func(w *world) {
			w.move(0, commit("a"))
			w.clock.Step(80 * time.Hour)
		},
		"the service does not tell since when": func(w *world) {
			w.move(7, commit("b"))
			w.moved[7] = time.Time{}
		},
		"the webhook is not called for such": func(w *world) {
			w.move(0, commit("a"))
			w.move(7, commit("b"))
			w.hooks[1].Pushes, w.hooks[1].Pulls = false, false
		},
		"nobody was away": func(w *world) { w.move(0, commit("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c(w)
			want := ""
			if name != "nobody was away" {
				w.pause(10 * time.Minute)
				want = "True Called"
			}
			w.run(time.Hour)
			w.wantCondition(want)
		})
	}
}

// A record of something else is none: the same commit on another branch, the same pull request at
// another commit.
func TestRecordsOfSomethingElse(t *testing.T) {
	w := newWorld(t)
	w.move(0, commit("a"))
	w.move(7, commit("b"))
	w.record(0, commit("a"), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/heads/other" })
	w.record(7, commit("c"))
	w.pause(10 * time.Minute)
	w.run(10 * time.Minute)
	if told := w.wantCondition("False HeadsNotRecorded"); !strings.Contains(told, "main") || !strings.Contains(told, "!7") {
		t.Errorf("told: %s", told)
	}
}

// A head that has just moved is not named as long as its delivery may be under way, and no longer.
func TestADeliveryThatIsUnderWay(t *testing.T) {
	w := newWorld(t)
	w.pause(10 * time.Minute)
	w.clock.Step(time.Second)
	w.move(0, commit("a"))
	w.run(underWay - time.Second)
	w.wantCondition("True Called")
	w.run(settleEvery)
	w.wantCondition("False HeadsNotRecorded")
}

// After an outage of ours GitLab may have paused the webhook and called it again before anybody
// looked. A comparison that fails keeps nothing from being sent again, and is made later.
func TestHeadsAreComparedAfterAnOutage(t *testing.T) {
	w := newWorld(t)
	w.run(10 * time.Minute)
	w.missed("a")
	w.move(7, commit("b"))
	w.noHeads = fault.Transientf("Down", "502")
	w.heard()
	w.run(20 * time.Minute)
	w.wantOnce("a")
	w.wantCondition("")
	w.run(3 * time.Hour)
	w.missed("c")
	w.run(10 * time.Minute) // of which no receiver tells
	w.wantOnce("c")
	w.noHeads = nil
	w.run(10 * time.Minute)
	w.wantCondition("False HeadsNotRecorded")
}

// What the log has is sent again first: a head whose delivery is among that is not named. Nobody
// waits for the comparison long after.
func TestHeadsWaitForWhatIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.run(10 * time.Minute)
	w.move(0, commit("a"))
	w.move(7, commit("b")) // its delivery was never sent
	w.missed("push")
	w.clock.Step(underWay)
	w.receive = func(string) int {
		w.record(0, commit("a"))
		return http.StatusAccepted
	}
	w.heard()
	w.run(30 * time.Second)
	if told := w.wantCondition("False HeadsNotRecorded"); strings.Contains(told, "main") || !strings.Contains(told, "!7") {
		t.Errorf("told: %s", told)
	}
	if n := w.statusWrites(); n != 1 {
		t.Errorf("%d writes, want one that names what is left", n)
	}
	w.wantEvents("HeadsNotRecorded")
}

// When the last of what was refused before a pause has been sent again, the next regular look is
// not waited for.
func TestHeadsAreComparedSoonAfterAPause(t *testing.T) {
	w := newWorld(t)
	w.missed("push")
	w.move(7, commit("b"))
	w.pause(20 * time.Minute)
	w.run(time.Minute)
	w.wantOnce("push")
	w.wantCondition("False HeadsNotRecorded")
}

// Of two webhooks one is paused: what that one did not send is named, too.
func TestOneOfTwoWebhooksWasPaused(t *testing.T) {
	w := newWorld(t)
	w.lead(8, provider.HookCalled)
	w.move(7, commit("b"))
	w.pause(20 * time.Minute)
	w.wantCondition("False HeadsNotRecorded")
}

// As many are named as a message holds.
func TestManyHeads(t *testing.T) {
	w := newWorld(t)
	for n := range int64(20) {
		w.move(20-n, commit("a"))
	}
	w.pause(10 * time.Minute)
	w.run(10 * time.Minute)
	if told := w.wantCondition("False HeadsNotRecorded"); !strings.Contains(told, ": merge request !1 at aaaaaaaa, merge request !2 ") || !strings.Contains(told, "!10 at aaaaaaaa, and 10 more.") {
		t.Errorf("told: %s", told)
	}
}
