// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H2: a receiver that is cut off from the API server stays ready, because it cannot distinguish
// that from an outage, and an outage would remove every endpoint. It answers 503 with Retry-After
// within 8 s and never 2xx, sets a metric, and records again when the connection is back.
func TestCutOffReceiverStaysReady(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, proxied: true})
	receiver := env.receivers[0]
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("cut-off", "push")})
	receiver.Proxy.Cut()
	begin := time.Now()
	for n := 1; time.Since(begin) < outage; n++ {
		env.requireRetryLater("cut off", env.mustSend(receiver, delivery))
		if status := env.getStatus(receiver, "/ready"); status != http.StatusOK {
			t.Errorf("cut off, /ready answers %d, want 200", status)
		}
		if got := env.countDeliveries(receiver, "unavailable", "ConnectionFailed") + env.countDeliveries(receiver,
			"unavailable", "Timeout"); got > n {
			t.Errorf("%d deliveries were refused and %d are counted", n, got)
		}
	}
	receiver.Proxy.Restore()
	env.eventually(afterFault, "it records again", func() error {
		answer, err := env.send(receiver, delivery)
		if err == nil && answer.status != http.StatusAccepted {
			err = fmt.Errorf("it answers %v", answer)
		}
		return err
	})
	env.awaitCheck(sha, checkName("cut-off"), "success", afterFault)
	env.requireOneOfEach(sha)
}

// H3 for the receiver: at SIGTERM it becomes unready at once. It accepts new deliveries for as
// long as endpoints take to be removed and closes their connections, then stops listening,
// finishes deliveries in flight, and ends.
func TestReceiverShutdownOrder(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{controllers: 1})
	receiver := env.startReceiver(true, "-drain-wait="+slowDrain.String())
	land := make(chan struct{})
	first := receiver.Proxy.Add(cluster.Rule{Match: creates("gitevents"), Count: 1, Do: cluster.Hold(land)})
	sha, inFlight := env.push(map[string]string{".tekton/push.yaml": pipeline("drained", "push")})
	answers := make(chan copyAnswer, 1)
	go func() {
		answer, err := env.send(receiver, inFlight)
		answers <- copyAnswer{answer, err}
	}()
	env.awaitHits(first, 1)
	env.must(receiver.Terminate())
	env.eventually(slowDrain, "it is not ready", func() error {
		if status := env.getStatus(receiver, "/ready"); status != http.StatusServiceUnavailable {
			return fmt.Errorf("/ready answers %d", status)
		}
		return nil
	})
	request, err := env.newDelivery().Request(env.ctx, receiver.URL)
	env.must(err)
	late, err := http.DefaultTransport.RoundTrip(request) // a client that would keep the connection
	env.must(err)
	_ = late.Body.Close()
	if late.StatusCode != http.StatusAccepted || !late.Close {
		t.Errorf("a delivery while it drains is answered %s, Connection: close %t; want 202 and true", late.Status,
			late.Close)
	}
	close(land)
	if got := <-answers; got.err != nil || got.status != http.StatusAccepted {
		t.Errorf("the delivery in flight is answered %v (%v), want 202", got.response, got.err)
	}
	ctx, cancel := context.WithTimeout(env.ctx, drained)
	defer cancel()
	env.must(receiver.Wait(ctx))
	if ended := env.loggedErrors(receiver); len(ended) != 0 {
		t.Errorf("it logged errors at its end: %q", ended)
	}
	env.awaitCheck(sha, checkName("drained"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	env.requireInvariants()
}

// getStatus returns the status of a GET, 0 when there was no answer.
func (env *environment) getStatus(p *installation.Process, path string) int {
	env.t.Helper()
	request, err := http.NewRequestWithContext(env.ctx, http.MethodGet, p.URL+path, nil)
	env.must(err)
	answer, err := exchange(request)
	if err != nil {
		return 0
	}
	return answer.status
}
