// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// A namespace that has had many large bodies written is refused the next one before it is decoded; small ones are
// taken.
func TestLargeBodiesBeyondARateAreNotDecoded(t *testing.T) {
	w := ownWorld(t)
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
	if status != http.StatusServiceUnavailable || n < 5 {
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
