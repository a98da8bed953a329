// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

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

// A2: while the record or its payload cannot be created, a delivery is answered 503 with
// Retry-After, and it causes no call and no object. Afterwards the redelivery of each is processed
// once.
func TestUnpersistedDeliveryIsRefused(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, refusesUnpersisted)
}

func refusesUnpersisted(t *testing.T, env *environment) {
	receiver, impatient := env.receivers[0], env.startReceiver(true, "-api-wait=3s")
	sha, first := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	refused := []delivery{first}
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
			delivery := env.newDelivery()
			// If a GitEvent is refused after its payload was created, the redelivery finds the
			// payload.
			if resource == "eventpayloads" || j == 0 {
				delivery = env.largeDelivery(delivery)
			}
			env.requireRetryLater(what, env.mustSend(receiver, delivery))
			rule.Remove()
			if rule.Hits() == 0 {
				t.Errorf("%s: the fault was never met", what)
			}
			if events := env.events(); len(events) != 0 {
				t.Fatalf("%s: GitEvent %s is stored, want none", what, events[0].Name)
			}
			refused = append(refused, delivery)
		}
	}
	receiver.Proxy.Cut()
	env.requireRetryLater("no connection to the API server", env.mustSend(receiver, first))
	receiver.Proxy.Restore()
	env.requireNoSideEffects("after every fault")

	// for a second it assumes that the API server does not answer
	env.eventually(afterFault, "it records again", func() error {
		if a := env.mustSend(receiver, first); a.status != http.StatusAccepted {
			return fmt.Errorf("answered %v", a)
		}
		return nil
	})
	for _, delivery := range refused {
		env.deliver(delivery, 202)
	}
	env.awaitAllSettled(afterFault)
	for _, delivery := range refused {
		env.requireOneRun(delivery)
	}
	env.requireRunCount(len(refused))
	env.requireNoFailure(sha)
}
