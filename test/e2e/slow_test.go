// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// S3: connections that send headers and one byte a second, and come back whenever they are closed, keep no signed delivery
// waiting: all are taken while the attack goes on, and what they have sent takes little memory.
func TestS3SlowConnectionsKeepNobodyWaiting(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, own: true})
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("unhurried", "push")})
	header, _ := partsOf(w.again())
	begun := []string{"POST / HTTP/1.1", "Host: receiver", "Content-Length: 1000"}
	for name := range header {
		begun = append(begun, name+": "+header.Get(name))
	}
	address, err := url.Parse(w.receivers[0].URL)
	w.must(err)
	slow := strings.Join(begun, "\r\n") + "\r\n\r\n{"
	// All of the first mebibyte but its end: what the receiver holds of bodies that have no slot.
	heavy := strings.Replace(slow, "Length: 1000", "Length: 1048576", 1) + strings.Repeat(" ", 1<<20-2)
	for _, attack := range []struct {
		connections int
		begun       string
	}{{0, ""}, {128, slow}, {1000, slow}, {500, heavy}} {
		ctx, stop := context.WithCancel(w.ctx)
		var busy, ready sync.WaitGroup
		attackers := attack.connections
		ready.Add(attackers)
		for range attackers {
			connected := sync.OnceFunc(ready.Done)
			busy.Go(func() { slowly(ctx, address.Host, attack.begun, connected) })
		}
		ready.Wait()
		for i := range 20 {
			if a := w.sent(w.receivers[0], delivery); a.status != http.StatusAccepted {
				t.Errorf("with %d slow connections delivery %d is answered %v, want 202", attackers, i, a)
			}
		}
		if status := w.asked(w.receivers[0], "/ready"); status != http.StatusOK {
			t.Errorf("with %d slow connections /ready answers %d", attackers, status)
		}
		stop()
		busy.Wait()
	}
	used, allowed := w.memory(w.receivers[0])
	t.Logf("the receiver used at most %d MiB of %d", used>>20, allowed>>20)
	if used >= allowed*3/4 { // twice what is live, and more on a busy machine: what ended is collected late
		t.Errorf("the receiver used %d bytes of %d for what nobody has verified", used, allowed)
	}
	w.eventually(soon, "slow bodies are counted", func() error {
		if w.counted(w.receivers[0], "rejected", "TooSlow")+w.counted(w.receivers[0], "rejected", "BodyIncomplete") == 0 {
			return fmt.Errorf("none is")
		}
		return nil
	})
	w.checkReaches(sha, checkName("unhurried"), "success", afterFault)
	w.onlyOne(sha)
	w.invariants()
}

// slowly begins a request and sends one byte a second of it, again and again until ctx ends; it comes back after a second.
func slowly(ctx context.Context, address, begun string, connected func()) {
	defer connected()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		text := []byte(begun)
		for {
			if _, err := conn.Write(text); err != nil {
				break
			}
			connected()
			text = []byte(" ")
			select {
			case <-tick.C:
			case <-ctx.Done():
				_ = conn.Close()
				return
			}
		}
		_ = conn.Close()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
