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

// A1: when a delivery is answered 2xx, another client can read its record and its payload from the
// API server. The answer comes within 8 s, without a controller and while each write takes a
// second.
func TestAnswerFollowsDurableRecord(t *testing.T) {
	forEachService(t, setup{receivers: 2, controllers: 1, proxied: true}, answersAfterRecord)
}

func answersAfterRecord(t *testing.T, env *environment) {
	env.kill(env.controllers[0]) // a settled event keeps no payload
	slow := env.receivers[0].Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Verb == "create" }, Do: cluster.Delay(time.Second),
	})
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})

	answer := env.mustSend(env.receivers[0], delivery)
	// These reads follow the answer at once: an answer ahead of its record would fail by a second.
	events := env.events()
	if answer.status != 202 || slow.Hits() < 1 {
		t.Errorf("answered %v after %d slow writes, want 202 after one or more", answer, slow.Hits())
	}
	if len(events) != 1 || events[0].Spec.DeliveryKey != delivery.ID() || !strings.Contains(answer.body, events[0].Name) {
		t.Fatalf("right after the answer %v the GitEvents are %v, want the one it names", answer, events)
	}
	_, body := partsOf(delivery)
	payload, err := blob.Unpack(events[0].Payload, events[0].Spec.Payload)
	if err != nil || string(payload) != string(body) {
		t.Errorf("right after the answer the payload is %d bytes (%v), want the %d that were delivered", len(payload), err,
			len(body))
	}
	if other := env.mustSend(env.receivers[1], delivery); other.status != 202 ||
		!strings.Contains(other.body, "already recorded as "+events[0].Name) {
		t.Errorf("the other replica answers a copy with %v, want 202 and that it is recorded", other)
	}
	env.must(env.controllers[0].Start(env.ctx))
	env.awaitCheck(sha, checkName("hello"), "success", afterFault)
	env.requireOneOfEach(sha)
}

// requireOneRun requires that a delivery has one record, which has one PipelineRun.
func (env *environment) requireOneRun(d delivery) {
	env.t.Helper()
	records, runs := 0, 0
	for _, event := range env.events() {
		if event.Spec.DeliveryKey == d.ID() {
			records++
			runs += len(event.Status.Runs)
		}
	}
	if records != 1 || runs != 1 {
		env.t.Errorf("delivery %s has %d records and %d runs, want one of each", d.ID(), records, runs)
	}
}

// A4, A5: fifty copies of one delivery at the same time over three replicas, and one after its
// event is settled, are all acknowledged. They have one record, one payload, one run and one
// check.
func TestFiftyCopiesMakeOneRecord(t *testing.T) {
	forEachService(t, setup{receivers: 3, controllers: 1}, recordsFiftyCopiesOnce)
}

func recordsFiftyCopiesOnce(t *testing.T, env *environment) {
	const copies = 50
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	answers := env.sendCopies(delivery, copies)
	for n, a := range answers {
		if a.err != nil || a.status != 202 {
			t.Errorf("copy %d is answered %v (%v), want 202", n, a.response, a.err)
		}
	}
	env.deliver(delivery, 202) // its redelivery follows
	env.awaitCheck(sha, checkName("hello"), "success", soon)
	env.requireOneOfEach(sha)
	if events, payloads := env.countStored(); events != 1 || payloads != 0 {
		t.Errorf("%d records and %d payloads are left, want 1 settled record and none", events, payloads)
	}
	env.requirePostedOnce(sha)
	before := env.countOperations(anything)
	status, body, err := env.git.redeliver(env.ctx, delivery.ID())
	env.must(err)
	if status != 202 || !strings.Contains(string(body), "already recorded") {
		t.Errorf("the late copy is answered %d %s, want 202 and that it is recorded", status, body)
	}
	// After a later event the controller has processed the late copy.
	again := env.newDelivery()
	env.deliver(again, 202)
	env.eventually(soon, "the later event has its run and is settled", func() error {
		if len(env.awaitAllSettled(soon)) != 2 || len(env.runs()) != 2 {
			return errMissing
		}
		return nil
	})
	if after := env.countOperations(anything); after == before {
		t.Error("the later event made no call to the forge")
	}
	env.requireOneRun(delivery)
	env.requireOneRun(again)
	if checks := env.git.checks(sha); len(checks) != 2 {
		t.Errorf("%d checks of 2 events, want 2", len(checks)) // on GitLab the second replaces the first
	}
	env.requireNoFailure(sha)
}

type copyAnswer struct {
	response
	err error
}

// sendCopies sends n copies at the same time, to the receivers in turn.
func (env *environment) sendCopies(d delivery, n int) []copyAnswer {
	answers := make([]copyAnswer, n)
	ctx, release := context.WithCancel(env.ctx)
	var done sync.WaitGroup
	for i := range answers {
		done.Go(func() {
			<-ctx.Done() // all start at the same time
			answers[i].response, answers[i].err = env.send(env.receivers[i%len(env.receivers)], d)
		})
	}
	release()
	done.Wait()
	return answers
}

// A6 with A4 and A5: copies of a delivery reach three replicas while a record of the same delivery
// exists that was settled without runs. They make one new record, not several.
func TestPendingEventIsReprocessedOnce(t *testing.T) {
	forEachService(t, setup{receivers: 3, controllers: 1}, reprocessesPendingEvent)
}

func reprocessesPendingEvent(t *testing.T, env *environment) {
	number, sha := env.openForkPull("stranger")
	delivery := env.opened(number)
	env.deliver(delivery, 202)
	env.awaitCheck(sha, application, "queued", soon)
	env.awaitAllSettled(soon)
	env.git.grant("stranger", "write")
	for n, a := range env.sendCopies(delivery, 12) {
		if a.err != nil || a.status != 202 {
			t.Errorf("copy %d is answered %v (%v), want 202", n, a.response, a.err)
		}
	}
	env.awaitCheck(sha, checkName("pr"), "success", soon)
	env.awaitAllSettled(soon)
	if events := env.events(); len(events) != 2 {
		t.Errorf("%d GitEvents, want the one that was pending and one with a run", len(events))
	}
	env.requireRunCount(1)
	list, err := env.Plumbline.PlumblineV1alpha1().EventPayloads(env.Namespace).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	if len(list.Items) != 0 {
		t.Errorf("%d payloads are left of settled events, want none", len(list.Items))
	}
}
