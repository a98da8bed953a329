// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// probe makes round trips through our own listener. The answer has to carry the text that this
// process made up, so another process on the same port does not pass for us.
type probe struct {
	identity string
	good     atomic.Bool
	client   *http.Client
}

func newProbe() *probe {
	return &probe{
		identity: rand.Text(),
		// A connection each time: that the listener accepts is what is to be seen. No proxy stands
		// in between.
		client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

func (p *probe) passed() bool { return p.good.Load() }

// answer is GET /live: 503 when the process makes no progress. Its own round trips do not mind: a
// process that is stuck with one delivery serves the others until it is restarted.
func (p *probe) answer(w http.ResponseWriter, progress bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !progress {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, p.identity)
}

// run probes until ctx ends, at once and then every probeEvery. One success is enough to pass; it
// takes probeFailures in a row to fail, so that a busy moment does not take every replica out of
// service.
func (p *probe) run(ctx context.Context, addr net.Addr) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for failures := 0; ; {
		failures++
		if p.roundTrip(ctx, "http://"+dialable(addr)+"/live") {
			failures = 0
			p.good.Store(true)
		}
		if failures >= probeFailures {
			p.good.Store(false)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *probe) roundTrip(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := p.client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }() // read-only: nothing to lose
	body, err := io.ReadAll(io.LimitReader(response.Body, 128))
	return err == nil && string(body) == p.identity
}

// dialable is where a listener can be reached from this machine.
func dialable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}
