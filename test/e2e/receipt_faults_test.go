// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// persistFault is one way in which a record cannot be written.
type persistFault struct {
	name string
	do   cluster.Action
}

// noAnswer is the fault that a receiver has to wait for.
const noAnswer = "no answer at all"

func persistFaults() []persistFault {
	return []persistFault{
		{"429 too many requests", cluster.Fault(cluster.TooManyRequests())},
		{"500 of etcd, outcome unknown", cluster.Fault(cluster.EtcdTimeout())},
		{"503 unavailable", cluster.Fault(cluster.Unavailable())},
		{"504 timeout, outcome unknown", cluster.Fault(cluster.RequestTimeout())},
		{noAnswer, cluster.Hold(nil)},
		{"connection dropped", cluster.Drop()},
		{"webhook call failed", cluster.Fault(cluster.WebhookRefused())},
		{"webhook timed out", cluster.Fault(cluster.WebhookTimeout())},
		{"denied by a policy", cluster.Fault(cluster.PolicyDenied("x", "no-events", "not now"))},
		{"401 while tokens rotate", cluster.Fault(cluster.Unauthorized())},
	}
}

// A2: while the record or its payload cannot be created, a delivery is answered 503 with Retry-After, and nothing is
// called, created or recorded for it; once it can, the redelivery of each is processed once.
func TestA2CannotPersist(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, refusesWhatItCannotPersist)
}

func refusesWhatItCannotPersist(t *testing.T, w *world) {
	receiver, impatient := w.receivers[0], w.startReceiver(true, "-api-wait=3s")
	sha, first := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	refused := []delivery{first}
	w.foreignRecord(first)
	for i, resource := range []string{"gitevents", "eventpayloads"} {
		for j, fault := range persistFaults() {
			if testing.Short() && j/5 != i { // each fault once, with one of the two
				continue
			}
			what, receiver := "create of "+resource+": "+fault.name, receiver
			if fault.name == noAnswer {
				receiver = impatient
			}
			rule := receiver.Proxy.Add(cluster.Rule{Match: creates(resource), Do: fault.do})
			delivery := w.again()
			if resource == "eventpayloads" {
				delivery = w.apart(delivery)
			}
			w.sendAgain(what, w.sent(receiver, delivery))
			rule.Remove()
			if rule.Hits() == 0 {
				t.Errorf("%s: the fault was never met", what)
			}
			if events := w.events(); len(events) != 0 {
				t.Fatalf("%s: GitEvent %s is stored, want none", what, events[0].Name)
			}
			refused = append(refused, delivery)
		}
	}
	receiver.Proxy.Cut()
	w.sendAgain("no connection to the API server", w.sent(receiver, first))
	receiver.Proxy.Restore()
	w.untouched("after every fault")

	w.eventually(afterFault, "it records again", func() error { // it believes for a second that the API server does not answer
		if a := w.sent(receiver, first); a.status != http.StatusAccepted {
			return fmt.Errorf("answered %v", a)
		}
		return nil
	})
	for _, delivery := range refused {
		w.deliver(delivery, 202)
	}
	w.settled(afterFault)
	for _, delivery := range refused {
		w.oneOf(delivery)
	}
	if runs := w.runs(); len(runs) != len(refused) {
		t.Errorf("%d PipelineRuns of %d deliveries", len(runs), len(refused))
	}
	w.neverFailed(sha)
}

// foreignRecord requires the answer to a delivery whose name is taken by the record of something else, and that the
// record stays as it was; then takes it away.
func (w *world) foreignRecord(d delivery) {
	w.t.Helper()
	events := w.Plumbline.PlumblineV1alpha1().GitEvents(w.Namespace)
	host, provider := strings.TrimPrefix(w.git.url(), "http://"), string(w.git.kind())
	foreign := &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Name: recordName(w.git, d), Namespace: w.Namespace},
		Spec: v1alpha1.GitEventSpec{
			Provider: provider, Host: host, DeliveryKey: d.ID(), Trigger: v1alpha1.TriggerPush, EventType: "push",
			SHA:     strings.Repeat("a", 40),
			Payload: v1alpha1.BlobReference{Name: "other", Digest: "sha256:" + strings.Repeat("0", 64), Chunks: 1},
			// A Repository that does not exist: the controller ends it without a call to the forge.
			Repository: v1alpha1.RepositoryReference{Namespace: w.ci, Name: "nobody", URL: w.git.page()},
			ReceivedAt: metav1.Now(),
		},
	}
	created, err := events.Create(w.ctx, foreign, metav1.CreateOptions{})
	w.must(err)
	w.sendAgain("409 with a foreign object under the name", w.sent(w.receivers[0], d))
	now, err := events.Get(w.ctx, created.Name, metav1.GetOptions{})
	w.must(err)
	if now.UID != created.UID || now.Spec.Payload.Name != "other" {
		w.t.Errorf("the foreign record was replaced or changed: %+v", now.Spec)
	}
	w.must(events.Delete(w.ctx, created.Name, metav1.DeleteOptions{}))
	w.untouched("409 with a foreign object under the name")
}

// A2, second half: a create that landed although its answer was lost is processed exactly once, whatever its own answer
// was, also when the service delivers it again.
func TestA2CreateThatLanded(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, takesACreateThatLanded)
}

func takesACreateThatLanded(t *testing.T, w *world) {
	receiver := w.receivers[0]
	sha, first := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	deliveries := []delivery{}
	for _, c := range []struct {
		name, resource string
		do             cluster.Action
		blind          bool // the read that would tell fails too
		want           int
	}{
		{"the record lands and the connection is dropped", "gitevents", cluster.ApplyThenDrop(), false, 202},
		{"the record lands and the answer is 504", "gitevents", cluster.ApplyThenAnswer(504, cluster.RequestTimeout()), false, 202},
		{"the record lands and etcd says it timed out", "gitevents", cluster.ApplyThenAnswer(500, cluster.EtcdTimeout()), false, 202},
		{"the record lands, 504, and it cannot be read either", "gitevents", cluster.ApplyThenAnswer(504, cluster.RequestTimeout()), true, 503},
		{"the payload lands and the connection is dropped", "eventpayloads", cluster.ApplyThenDrop(), false, 202},
		{"the payload lands and the answer is 504", "eventpayloads", cluster.ApplyThenAnswer(504, cluster.RequestTimeout()), false, 202},
	} {
		delivery := first
		if len(deliveries) > 0 {
			delivery = w.again()
		}
		if c.resource == "eventpayloads" {
			delivery = w.apart(delivery)
		}
		deliveries = append(deliveries, delivery)
		fault := receiver.Proxy.Add(cluster.Rule{Match: creates(c.resource), Count: 1, Do: c.do})
		if c.blind {
			receiver.Proxy.Add(cluster.Rule{
				Match: func(c cluster.Call) bool { return c.Is("get", "gitevents") && fault.Hits() > 0 }, Do: cluster.Fault(cluster.Unavailable()),
			})
		}
		answer := w.sent(receiver, delivery)
		if c.want == 503 {
			w.sendAgain(c.name, answer)
		} else if answer.status != c.want {
			t.Errorf("%s: answered %v, want %d", c.name, answer, c.want)
		}
		if fault.Hits() != 1 {
			t.Errorf("%s: the fault was met %d times, want once", c.name, fault.Hits())
		}
		receiver.Proxy.Reset()
		// GitHub's "Redeliver", at once: the event is open or its run is under way.
		if again := w.sent(receiver, delivery); again.status != http.StatusAccepted {
			t.Errorf("%s: the copy that follows is answered %v, want 202", c.name, again)
		}
	}
	w.settled(afterFault)
	for _, delivery := range deliveries {
		w.deliver(delivery, 202) // and late: the event is settled
		w.oneOf(delivery)
	}
	if runs := w.runs(); len(runs) != len(deliveries) {
		t.Errorf("%d PipelineRuns of %d deliveries", len(runs), len(deliveries))
	}
	if _, payloads := w.stored(); payloads != 0 {
		t.Errorf("%d payloads are left of settled events, want none", payloads)
	}
	w.neverFailed(sha)
}
