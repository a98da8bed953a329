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

// H2: a receiver that is cut off from the API server stays ready, because it cannot tell that from
// an outage, which would take every endpoint away; it answers 503 with Retry-After within 8 s and
// never 2xx, says so in a metric, and records again when the connection is back.
func TestH2ACutOffReceiverStaysReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	receiver := w.receivers[0]
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("cut-off", "push")})
	receiver.Proxy.Cut()
	begin := time.Now()
	for n := 1; time.Since(begin) < outage; n++ {
		w.sendAgain("cut off", w.sent(receiver, delivery))
		if status := w.asked(receiver, "/ready"); status != http.StatusOK {
			t.Errorf("cut off, /ready answers %d, want 200", status)
		}
		if got := w.counted(receiver, "unavailable", "ConnectionFailed") + w.counted(receiver, "unavailable", "Timeout"); got > n {
			t.Errorf("%d deliveries were refused and %d are counted", n, got)
		}
	}
	receiver.Proxy.Restore()
	w.eventually(afterFault, "it records again", func() error {
		answer, err := w.send(receiver, delivery)
		if err == nil && answer.status != http.StatusAccepted {
			err = fmt.Errorf("it answers %v", answer)
		}
		return err
	})
	w.checkReaches(sha, checkName("cut-off"), "success", afterFault)
	w.onlyOne(sha)
}

// H3, the receiver's part: at SIGTERM it is not ready at once, takes new deliveries for as long as
// endpoints take to go and closes their connections, then listens no more, ends what is in flight,
// and is gone.
func TestH3TheOrderOfAReceiversEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{controllers: 1})
	w.claimed()
	receiver := w.startReceiver(true, "-drain-wait="+slowDrain.String())
	land := make(chan struct{})
	first := receiver.Proxy.Add(cluster.Rule{Match: creates("gitevents"), Count: 1, Do: cluster.Hold(land)})
	sha, inFlight := w.push(map[string]string{".tekton/push.yaml": pipeline("drained", "push")})
	answers := make(chan copied, 1)
	go func() {
		answer, err := w.send(receiver, inFlight)
		answers <- copied{answer, err}
	}()
	w.hit(first, 1)
	w.must(receiver.Terminate())
	w.eventually(slowDrain, "it is not ready", func() error {
		if status := w.asked(receiver, "/ready"); status != http.StatusServiceUnavailable {
			return fmt.Errorf("/ready answers %d", status)
		}
		return nil
	})
	request, err := w.again().Request(w.ctx, receiver.URL)
	w.must(err)
	late, err := http.DefaultTransport.RoundTrip(request) // which would keep the connection
	w.must(err)
	_ = late.Body.Close()
	if late.StatusCode != http.StatusAccepted || !late.Close {
		t.Errorf("a delivery while it drains is answered %s, Connection: close %t; want 202 and true", late.Status, late.Close)
	}
	close(land)
	if got := <-answers; got.err != nil || got.status != http.StatusAccepted {
		t.Errorf("the delivery in flight is answered %v (%v), want 202", got.answered, got.err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, drained)
	defer cancel()
	w.must(receiver.Wait(ctx))
	if ended := w.logged(receiver); len(ended) != 0 {
		t.Errorf("it logged errors at its end: %q", ended)
	}
	w.checkReaches(sha, checkName("drained"), "success", afterFault)
	w.settled(afterFault)
	w.invariants()
}

// asked is the status of a GET, 0 when there was no answer.
func (w *world) asked(p *installation.Process, path string) int {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, p.URL+path, nil)
	w.must(err)
	answer, err := exchange(request)
	if err != nil {
		return 0
	}
	return answer.status
}
