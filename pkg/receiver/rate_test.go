// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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
