// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A namespace that has had many large bodies written is refused the next one before it is decoded;
// small ones are taken.
func TestLargeBodiesBeyondARateAreNotDecoded(t *testing.T) {
	w := webhookEnv(t)
	h := w.both()
	noise := make([]byte, 700<<10)
	sent := func(n int, sha string) delivery {
		_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(noise) // documented never to fail
		d := ownPush("")
		d.key, d.message.SHA, d.message.Padding = fmt.Sprint("own-", n), sha, base64.StdEncoding.EncodeToString(noise)
		return d.signed(ownSecret)
	}
	n, status := 0, http.StatusAccepted
	for ; status == http.StatusAccepted && n < 20; n++ {
		status = w.send(h, sent(n, sha).request()).Code
	}
	if status != http.StatusServiceUnavailable || n < 2 {
		t.Fatalf("large body %d is answered %d", n, status)
	}
	w.check(http.StatusServiceUnavailable, w.send(h, sent(n, "").request())) // decoded, it would be refused for good
	small := ownPush(ownSecret)
	small.key = "small"
	w.check(http.StatusAccepted, w.send(h, small.request()))
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.check(http.StatusBadRequest, w.send(h, sent(n, "").request()))
	w.check(http.StatusAccepted, w.send(h, sent(n, sha).request()))
}

// Large bodies that take little when they are compressed are not refused because many of them come
// together: only those count at once that are worked on.
func TestLargeBodiesThatTakeLittleAreTakenTogether(t *testing.T) {
	if raced {
		t.Skip("how many are worked on at once depends on how fast they are decoded")
	}
	w := webhookEnv(t)
	w.client.PrependReactor("create", "gitevents", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-time.After(30 * time.Millisecond)
		return false, nil, nil
	})
	h := w.both()
	var together sync.WaitGroup
	for n := range 14 {
		together.Go(func() {
			d := ownPush("")
			d.key, d.message.Padding = fmt.Sprint("own-", n), strings.Repeat(" many small files", 58<<10)
			w.check(http.StatusAccepted, w.send(h, d.signed(ownSecret).request()))
		})
	}
	together.Wait()
	w.wantEvents(14)
}

// inline is a delivery whose body takes so many bytes in its event, as it cannot be compressed.
func inline(key string, bytes int) delivery {
	noise := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%32s", key)))).Read(noise) // documented never to fail
	d := push(key)
	d.message.Padding = base64.StdEncoding.EncodeToString(noise)
	return d
}

// A body in its GitEvent is written with each status: what a namespace has written so has the rate
// that EventPayloads have. Bodies as they usually are do not count, and are taken however many
// there are.
func TestBodiesInEventsHaveARate(t *testing.T) {
	for _, size := range []int{12 << 10, 22 << 10, 31 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newEnv(t)
			h := w.replica()
			n, status := 0, http.StatusAccepted
			for ; status == http.StatusAccepted && n < 50; n++ {
				status = w.send(h, inline(fmt.Sprint("k", n), size).request()).Code
			}
			written := 4 * (size*4/3 - 10<<10) // with the event and three of its statuses, in base64, beyond what is usual
			if first, last := 512<<10/written, 512<<10/written+2; status != http.StatusServiceUnavailable || n-1 < first || n-1 > last {
				t.Fatalf("%d bodies of %d bytes are recorded, want %d to %d", n-1, size, first, last)
			}
			if w.wantEvents(n - 1); w.payloads() != 0 || w.counted("unavailable", "NamespaceRate") != 1 {
				t.Errorf("%d payloads; log:\n%s", w.payloads(), w.log())
			}
			w.check(http.StatusAccepted, w.send(h, inline("k0", size).request())) // it is recorded, and costs nothing
			w.check(http.StatusServiceUnavailable, w.send(h, large("large").request()))
			for i := range 60 {
				w.check(http.StatusAccepted, w.send(h, inline(fmt.Sprint("usual", i), 5<<10).request()))
			}
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			w.check(http.StatusAccepted, w.send(h, inline(fmt.Sprint("k", n-1), size).request()))
		})
	}
}

// A bot that opens ten merge requests, or a push of some hundred files to ten repositories: what a
// team does at once is recorded, and a body that is hardly larger than usual counts hardly
// anything.
func TestWhatATeamDoesAtOnceIsRecorded(t *testing.T) {
	for size, n := range map[int]int{8 << 10: 100, 9 << 10: 40, 15 << 10: 10} { // 11, 12 and 20 KiB in JSON
		w := newEnv(t)
		h := w.replica()
		for i := range n {
			w.check(http.StatusAccepted, w.send(h, inline(fmt.Sprint("k", i), size).request()))
		}
	}
}

// A body that was not written does not count, and one that may have been written does.
func TestOnlyWrittenBodiesInEventsCount(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		counts bool
	}{
		"refused":     {apierrors.NewBadRequest(`admission webhook "x" denied the request: no`), false},
		"unreachable": {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			h := w.replica()
			w.fail("create", "gitevents", c.err)
			for i := range 20 {
				w.check(http.StatusServiceUnavailable, w.send(h, inline(fmt.Sprint("k", i), 31<<10).request()))
			}
			w.client.ReactionChain = w.client.ReactionChain[1:]
			if got := w.counted("unavailable", "NamespaceRate"); (got > 0) != c.counts {
				t.Errorf("%d of 20 deliveries met the rate", got)
			}
		})
	}
}
