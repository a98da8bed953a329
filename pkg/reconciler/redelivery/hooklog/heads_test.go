// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func commit(digit string) string { return strings.Repeat(digit, 40) }

// Heads implements provider.HookLog.
func (e *env) Heads(_ context.Context, since time.Time) (heads []provider.Head, err error) {
	e.calls++
	for _, head := range e.heads {
		if head.Pull == 0 || !e.moved[head.Pull].Before(since) {
			heads = append(heads, head)
		}
	}
	return heads, e.noHeads
}

// Moved implements provider.HookLog.
func (e *env) Moved(_ context.Context, pull int64) (time.Time, error) {
	e.calls++
	return e.moved[pull], nil
}

// move moves the default branch (0) or a pull request to a commit, without a delivery.
func (e *env) move(pull int64, sha string) {
	if e.moved == nil {
		e.moved = map[int64]time.Time{}
	}
	head := provider.Head{Pull: pull, Branch: "main", SHA: sha, At: e.clock.Now()}
	if pull != 0 {
		head.At = time.Time{}
		e.moved[pull] = e.clock.Now()
	}
	for i := range e.heads {
		if e.heads[i].Pull == pull {
			e.heads[i] = head
			return
		}
	}
	e.heads = append(e.heads, head)
}

// record adds an event of the default branch (0) or of a pull request.
func (e *env) record(pull int64, sha string, change ...func(*v1alpha1.GitEvent)) {
	e.Helper()
	event := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{SHA: sha, BaseRef: "refs/heads/main"}}
	event.Spec.Repository = v1alpha1.RepositoryReference{
		Namespace: "team", UID: "before", URL: "https://gitlab.com/acme/team/app",
	}
	if pull != 0 {
		event.Spec.BaseRef, event.Spec.PullRequest = "main", &v1alpha1.PullRequest{Number: pull}
	}
	for _, one := range change {
		one(event)
	}
	event.ObjectMeta = metav1.ObjectMeta{
		Namespace: system, Name: fmt.Sprintf("e-%d-%.8s", pull, sha),
		Labels:            map[string]string{plumbline.SubjectLabel: event.Spec.Subject()},
		CreationTimestamp: metav1.NewTime(e.clock.Now()),
	}
	if err := e.client.Tracker().Add(event); err != nil {
		e.Fatal(err)
	}
}

// pause lets GitLab pause the webhook for so long.
func (e *env) pause(long time.Duration) {
	e.hooks[1].State, e.hooks[1].Until = provider.HookPaused, e.clock.Now().Add(long)
	e.run(long)
	e.hooks[1].State, e.hooks[1].Until = provider.HookCalled, time.Time{}
}

// A15: what GitLab did not send while it had paused the webhook is in no log. The condition names
// the heads that moved meanwhile, and what to do. The Repository gets one Kubernetes Event,
// whatever restarts. The condition ends when they are recorded.
func TestA15HeadsThatAPausedWebhookDroppedAreNamed(t *testing.T) {
	e := newEnv(t)
	e.move(0, commit("a"))
	e.record(0, commit("a"))
	e.move(7, commit("b"))
	e.record(7, commit("b"))
	e.move(8, commit("c")) // is not pushed to meanwhile
	e.record(8, commit("c"))
	e.run(10 * time.Minute)
	e.wantCondition("")
	e.move(7, commit("d"))
	e.move(0, commit("e"))
	e.pause(20 * time.Minute)
	e.run(10 * time.Minute)
	text := e.wantCondition("False HeadsNotRecorded")
	for _, says := range []string{"branch main at eeeeeeee, merge request !7 at dddddddd.", "Push to them again",
		"/test"} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q: %s", says, text)
		}
	}
	if strings.Contains(text, "!8") {
		t.Errorf("it names what is recorded: %s", text)
	}
	writes := e.statusWrites()
	e.receive = refuses("x")
	e.deliver("x") // keeps the next comparison waiting
	e.run(20 * time.Minute)
	e.receive = nil
	e.start()
	e.run(time.Hour)
	if n := e.webhooksCalled(); n != 1 {
		t.Errorf("the metric says that GitLab calls %d webhooks", n)
	}
	e.start()
	e.run(time.Hour)
	if got := e.statusWrites(); got != writes {
		t.Errorf("the same was written %d times more", got-writes)
	}
	e.record(0, commit("e"))
	e.run(10 * time.Minute)
	if text := e.wantCondition("False HeadsNotRecorded"); strings.Contains(text, "main") || !strings.Contains(text, "!7") {
		t.Errorf("with the record of one of two: %s", text)
	}
	e.record(7, "", func(e *v1alpha1.GitEvent) { // a finished comment /test
		e.Spec.Comment, e.Status.Phase, e.Status.Plan = &v1alpha1.Comment{ID: 1}, v1alpha1.PhaseSettled,
			&v1alpha1.Plan{HeadSHA: commit("d")}
	})
	e.run(10 * time.Minute)
	e.wantCondition("True Called")
	e.wantEvents("WebhookPaused", "HeadsNotRecorded", "Called")
}

// wantEvents requires that the Repository has had these Kubernetes Events, by their reasons.
func (e *env) wantEvents(reasons ...string) {
	e.Helper()
	if len(e.events.Events) != len(reasons) {
		e.Fatalf("%d events, want %v", len(e.events.Events), reasons)
	}
	for _, reason := range reasons {
		if text := <-e.events.Events; strings.Fields(text)[1] != reason {
			e.Errorf("text %q, want %s", text, reason)
		}
	}
}

func TestOtherHeadsAreNotNamed(t *testing.T) {
	for name, c := range map[string]func(e *env){
		"moved before the Repository was made": func(e *env) {
			e.move(0, commit("a"))
			e.move(7, commit("b"))
			e.heads[0].At, e.moved[7] = e.clock.Now().Add(-2*time.Hour), e.clock.Now().Add(-2*time.Hour)
		},
		"so old that the record may be gone": func(e *env) {
			e.move(0, commit("a"))
			e.clock.Step(80 * time.Hour)
		},
		"the service does not tell since when": func(e *env) {
			e.move(7, commit("b"))
			e.moved[7] = time.Time{}
		},
		"the webhook is not called for such": func(e *env) {
			e.move(0, commit("a"))
			e.move(7, commit("b"))
			e.hooks[1].Pushes, e.hooks[1].Pulls = false, false
		},
		"all receivers were up": func(e *env) { e.move(0, commit("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			c(e)
			want := ""
			if name != "all receivers were up" {
				e.pause(10 * time.Minute)
				want = "True Called"
			}
			e.run(time.Hour)
			e.wantCondition(want)
		})
	}
}

// Such a record is of the same commit on another branch, or of the same pull request at another
// commit.
func TestRecordOfAnotherHeadDoesNotCount(t *testing.T) {
	e := newEnv(t)
	e.move(0, commit("a"))
	e.move(7, commit("b"))
	e.record(0, commit("a"), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/heads/other" })
	e.record(7, commit("c"))
	e.pause(10 * time.Minute)
	e.run(10 * time.Minute)
	if text := e.wantCondition("False HeadsNotRecorded"); !strings.Contains(text, "main") ||
		!strings.Contains(text, "!7") {
		t.Errorf("text: %s", text)
	}
}

// Its delivery may still come, for two minutes.
func TestHeadThatJustMovedIsNotNamed(t *testing.T) {
	e := newEnv(t)
	e.pause(10 * time.Minute)
	e.clock.Step(time.Second)
	e.move(0, commit("a"))
	e.run(deliveryWithin - time.Second)
	e.wantCondition("True Called")
	e.run(compareEvery)
	e.wantCondition("False HeadsNotRecorded")
}

// After an outage GitLab may have paused the webhook and called it again before the next read. A
// comparison that fails is repeated later, and delays no resend.
func TestHeadsAreComparedAfterASignal(t *testing.T) {
	e := newEnv(t)
	e.run(10 * time.Minute)
	e.missed("a")
	e.move(7, commit("b"))
	e.noHeads = fault.Transientf("Down", "502")
	e.signal()
	e.run(20 * time.Minute)
	e.wantOnce("a")
	e.wantCondition("")
	e.run(3 * time.Hour)
	e.missed("c")
	e.run(10 * time.Minute) // without a signal
	e.wantOnce("c")
	e.noHeads = nil
	e.run(10 * time.Minute)
	e.wantCondition("False HeadsNotRecorded")
}

// A head whose delivery is resent is not named. The comparison follows the last resend soon.
func TestHeadsAreComparedAfterTheResends(t *testing.T) {
	e := newEnv(t)
	e.run(10 * time.Minute)
	e.move(0, commit("a"))
	e.move(7, commit("b")) // its delivery was never sent
	e.missed("push")
	e.clock.Step(deliveryWithin)
	e.receive = func(string) int {
		e.record(0, commit("a"))
		return http.StatusAccepted
	}
	e.signal()
	e.run(30 * time.Second)
	if text := e.wantCondition("False HeadsNotRecorded"); strings.Contains(text, "main") || !strings.Contains(text, "!7") {
		t.Errorf("text: %s", text)
	}
	if n := e.statusWrites(); n != 1 {
		t.Errorf("%d writes, want one that names what is left", n)
	}
	e.wantEvents("HeadsNotRecorded")
}

// The comparison does not wait for the next regular read.
func TestHeadsAreComparedSoonAfterTheLastResend(t *testing.T) {
	e := newEnv(t)
	e.missed("push")
	e.move(7, commit("b"))
	e.pause(20 * time.Minute)
	e.run(time.Minute)
	e.wantOnce("push")
	e.wantCondition("False HeadsNotRecorded")
}

// GitLab has paused one of two webhooks.
func TestHeadsOfOneOfTwoWebhooksAreNamed(t *testing.T) {
	e := newEnv(t)
	e.lead(8, provider.HookCalled)
	e.move(7, commit("b"))
	e.pause(20 * time.Minute)
	e.wantCondition("False HeadsNotRecorded")
}

func TestConditionNamesTenHeads(t *testing.T) {
	e := newEnv(t)
	for n := range int64(20) {
		e.move(20-n, commit("a"))
	}
	e.pause(10 * time.Minute)
	e.run(10 * time.Minute)
	if text := e.wantCondition("False HeadsNotRecorded"); !strings.Contains(text,
		": merge request !1 at aaaaaaaa, merge request !2 ") || !strings.Contains(text, "!10 at aaaaaaaa, and 10 more.") {
		t.Errorf("text: %s", text)
	}
}
