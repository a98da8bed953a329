// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// Attacks are the findings of docs/reliability.md, "What an attacker costs others", that an
// untrusted user, a writer or a tenant can use against others.
func Attacks() []Attack {
	return []Attack{
		{2, "YAML of empty mappings", yamlBombs, pushBombs},
		{3, "connections of a byte a second", nil, slowConnections},
		{5, "large pushes, pages and labelled PipelineRuns", largeThings, pushLarge},
		{6, "a Repository without a token, flooded", withoutToken, flood},
		{10, "requests that nobody signed", nil, unsigned},
		{13, "hosts that hang", hangingHosts, pushToHanging},
		{14, "80 pushes to 80 pull requests of a stranger", pulls, pushToPulls},
	}
}

// tally counts what was sent, by result. The zero value is ready.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[what]++
}

// answered counts a delivery by its answer.
func (t *tally) answered(what string, status int, err error) {
	answer := fmt.Sprint(status)
	if err != nil {
		answer = "nothing before the end"
	}
	t.add(what + " answered " + answer)
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for what, n := range t.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// every calls f at a constant pace until ctx ends, whatever f takes, and waits for the last one.
func every(ctx context.Context, pace time.Duration, f func(n int)) {
	installation.OpenLoop(ctx, pace, math.MaxInt, func(n int, _ time.Time) { f(n) })
}

// from is a dialer with its own address on this machine: attackers are not where the Git services
// are.
func from(host byte) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, host)}}
}

// slow is the number of connections from one address, and of addresses with one connection each.
const slow = 128

// slowConnections sends headers and then one byte a second.
func slowConnections(ctx context.Context, s *stage, sent *tally) {
	var all sync.WaitGroup
	defer all.Wait()
	for n := range 2 * slow {
		host := byte(1)
		if n >= slow {
			host = byte(n - slow + 2)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				drip(ctx, host, strings.TrimPrefix(s.receiver.URL, "http://"), sent)
			}
		})
	}
}

// drip sends one byte a second over a connection until it or ctx ends.
func drip(ctx context.Context, host byte, address string, sent *tally) {
	connection, err := from(host).DialContext(ctx, "tcp", address)
	if err != nil {
		installation.Until(ctx, time.Now().Add(time.Second))
		return
	}
	defer func() { _ = connection.Close() }()
	sent.add("connections")
	text := "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: 1\r\nContent-Length: 100000\r\n\r\n"
	for begin, n := time.Now(), 0; n == 0 || installation.Until(ctx, begin.Add(time.Duration(n)*time.Second)); n++ {
		if _, err := connection.Write([]byte(text)); err != nil {
			sent.add("of them ended by the receiver")
			return
		}
		text = "{"
	}
}

// unsignedEvery is the pace of unsigned requests.
const unsignedEvery = 4 * time.Millisecond

// unsigned sends requests with a wrong signature, a wrong token, and for unknown repositories.
func unsigned(ctx context.Context, s *stage, sent *tally) {
	client := &http.Client{
		Timeout: giveUp, Transport: &http.Transport{DialContext: from(1).DialContext, MaxIdleConnsPerHost: 64},
	}
	header := map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + strings.Repeat("0", 64),
		"X-GitHub-Hook-Installation-Target-Type": "integration"}
	lab := map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "a guess"}
	every(ctx, unsignedEvery, func(n int) {
		body, headers := fmt.Sprintf(`{"installation":{"id":1},"repository":{"html_url":%q}}`, s.forge.URL()+"/"+good), header
		switch n % 3 {
		case 1:
			body, headers = fmt.Sprintf(`{"project":{"web_url":"%s/stranger/%d"}}`, s.gitlab.URL(), n), lab
		case 2:
			body, headers = fmt.Sprintf(`{"project":{"web_url":%q}}`, s.forge.URL()+"/"+good), lab
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.receiver.URL, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Github-Delivery", fmt.Sprint("unsigned-", n))
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		response, err := client.Do(r)
		status := 0
		if err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		}
		sent.answered("requests", status, err)
	})
}
