// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// A1: when a delivery is answered 2xx, its record and its payload can be read from the API server
// by somebody else, and the answer comes within 8 s, with no controller alive and writes that each
// take a second.
func TestA1AnswerAfterDurableRecord(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 2, controllers: 1, proxied: true}, answersAfterTheRecord)
}

func answersAfterTheRecord(t *testing.T, w *world) {
	w.kill(w.controllers[0]) // a settled event keeps no payload
	slow := w.receivers[0].Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Verb == "create" }, Do: cluster.Delay(time.Second),
	})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})

	answer := w.sent(w.receivers[0], delivery)
	// Nothing waits between the answer and these reads: an answer ahead of its record fails here by
	// a second.
	events := w.events()
	if answer.status != 202 || slow.Hits() < 1 {
		t.Errorf("answered %v after %d slow writes, want 202 after one or more", answer, slow.Hits())
	}
	if len(events) != 1 || events[0].Spec.DeliveryKey != delivery.ID() || !strings.Contains(answer.body, events[0].Name) {
		t.Fatalf("right after the answer %v the GitEvents are %v, want the one it names", answer, events)
	}
	_, body := partsOf(delivery)
	payload, err := blob.Unpack(events[0].Payload, events[0].Spec.Payload)
	if err != nil || string(payload) != string(body) {
		t.Errorf("right after the answer the payload is %d bytes (%v), want the %d that were delivered", len(payload), err, len(body))
	}
	if other := w.sent(w.receivers[1], delivery); other.status != 202 || !strings.Contains(other.body, "already recorded as "+events[0].Name) {
		t.Errorf("the other replica answers a copy with %v, want 202 and that it is recorded", other)
	}
	w.must(w.controllers[0].Start(w.ctx))
	w.checkReaches(sha, checkName("hello"), "success", afterFault)
	w.onlyOne(sha)
}

// oneOf requires that a delivery has one record, which made one PipelineRun.
func (w *world) oneOf(d delivery) {
	w.t.Helper()
	records, runs := 0, 0
	for _, event := range w.events() {
		if event.Spec.DeliveryKey == d.ID() {
			records++
			runs += len(event.Status.Runs)
		}
	}
	if records != 1 || runs != 1 {
		w.t.Errorf("delivery %s has %d records and %d runs, want one of each", d.ID(), records, runs)
	}
}

// A4, A5: fifty copies of one delivery at once over three replicas, and one when its run is over
// and its event is settled, are all acknowledged and have one record, one payload, one run and one
// check.
func TestA5FiftyCopiesOverThreeReplicas(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 3, controllers: 1}, takesFiftyCopiesOnce)
}

func takesFiftyCopiesOnce(t *testing.T, w *world) {
	const copies = 50
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	answers := w.copies(delivery, copies)
	for n, a := range answers {
		if a.err != nil || a.status != 202 {
			t.Errorf("copy %d is answered %v (%v), want 202", n, a.answered, a.err)
		}
	}
	w.deliver(delivery, 202) // whose redelivery follows
	w.checkReaches(sha, checkName("hello"), "success", soon)
	w.onlyOne(sha)
	if events, payloads := w.stored(); events != 1 || payloads != 0 {
		t.Errorf("%d records and %d payloads are left, want 1 settled record and none", events, payloads)
	}
	w.postedOnce(sha)
	before := w.count(anything)
	status, body, err := w.git.redeliver(w.ctx, delivery.ID())
	w.must(err)
	if status != 202 || !strings.Contains(string(body), "already recorded") {
		t.Errorf("the late copy is answered %d %s, want 202 and that it is recorded", status, body)
	}
	// A later event tells that the controller has had its turn with the late copy.
	again := w.again()
	w.deliver(again, 202)
	w.eventually(soon, "the later event has its run and is settled", func() error {
		if len(w.settled(soon)) != 2 || len(w.runs()) != 2 {
			return errMissing
		}
		return nil
	})
	if after := w.count(anything); after == before {
		t.Error("the later event made no call to the forge")
	}
	w.oneOf(delivery)
	w.oneOf(again)
	if checks := w.git.checks(sha); len(checks) != 2 {
		t.Errorf("%d checks of 2 events, want 2", len(checks)) // of GitLab's the second one takes the place of the first
	}
	w.neverFailed(sha)
}

type copied struct {
	answered
	err error
}

// copies sends n copies at once, in turn to each receiver.
func (w *world) copies(d delivery, n int) []copied {
	answers := make([]copied, n)
	ctx, release := context.WithCancel(w.ctx)
	var done sync.WaitGroup
	for i := range answers {
		done.Go(func() {
			<-ctx.Done() // all begin together
			answers[i].answered, answers[i].err = w.send(w.receivers[i%len(w.receivers)], d)
		})
	}
	release()
	done.Wait()
	return answers
}

// A4 and A5 meet: copies of a delivery to three replicas while a name is taken by another record of
// the same delivery that settled without runs make one new record, not several.
func TestA6PendingEventIsProcessedAgainOnce(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 3, controllers: 1}, processesAPendingEventAgain)
}

func processesAPendingEventAgain(t *testing.T, w *world) {
	number, sha := w.forkPull("stranger")
	delivery := w.opened(number)
	w.deliver(delivery, 202)
	w.checkReaches(sha, application, "queued", soon)
	w.settled(soon)
	w.git.grant("stranger", "write")
	for n, a := range w.copies(delivery, 12) {
		if a.err != nil || a.status != 202 {
			t.Errorf("copy %d is answered %v (%v), want 202", n, a.answered, a.err)
		}
	}
	w.checkReaches(sha, checkName("pr"), "success", soon)
	w.settled(soon)
	if events := w.events(); len(events) != 2 {
		t.Errorf("%d GitEvents, want the one that was pending and one with a run", len(events))
	}
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
	list, err := w.Plumbline.PlumblineV1alpha1().EventPayloads(w.Namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	if len(list.Items) != 0 {
		t.Errorf("%d payloads are left of settled events, want none", len(list.Items))
	}
}
