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

// probe makes round trips through the receiver's own listener. The answer must carry the random
// text of this process, so that another process on the same port does not pass.
type probe struct {
	identity string
	good     atomic.Bool
	client   *http.Client
}

func newProbe() *probe {
	return &probe{
		identity: rand.Text(),
		// A new connection each time, without a proxy: the probe tests that the listener accepts.
		client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

func (p *probe) passed() bool { return p.good.Load() }

// answer answers GET /live: with 503 when the process makes no progress. The probe's own round
// trips ignore the status: a process that is stuck with one delivery serves the others until it is
// restarted.
func (p *probe) answer(w http.ResponseWriter, progress bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !progress {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, p.identity)
}

// run probes at once and then every probeEvery, until ctx ends. One success is enough to pass. Only
// probeFailures in a row fail, so that a busy moment does not take every replica out of service.
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

// dialable returns the address at which this machine reaches a listener.
func dialable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}
