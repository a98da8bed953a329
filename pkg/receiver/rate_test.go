// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// After many large bodies of a namespace, the next one is refused before it is decoded. Small
// bodies are accepted.
func TestBodiesOverTheRateAreNotDecoded(t *testing.T) {
	e := webhookEnv(t)
	h := e.both()
	noise := make([]byte, 700<<10)
	sent := func(n int, sha string) delivery {
		_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(noise) // documented never to fail
		d := webhookPush("")
		d.key, d.message.SHA, d.message.Padding = fmt.Sprint("own-", n), sha, base64.StdEncoding.EncodeToString(noise)
		return d.signed(repositorySecret)
	}
	n, status := 0, http.StatusAccepted
	for ; status == http.StatusAccepted && n < 20; n++ {
		status = e.send(h, sent(n, sha).request()).Code
	}
	if status != http.StatusServiceUnavailable || n < 2 {
		t.Fatalf("large body %d is answered %d", n, status)
	}
	e.check(http.StatusServiceUnavailable, e.send(h, sent(n, "").request())) // after decoding, it would be answered 400
	small := webhookPush(repositorySecret)
	small.key = "small"
	e.check(http.StatusAccepted, e.send(h, small.request()))
	e.clock.SetTime(e.clock.Now().Add(time.Minute))
	e.check(http.StatusBadRequest, e.send(h, sent(n, "").request()))
	e.check(http.StatusAccepted, e.send(h, sent(n, sha).request()))
}

// Many large bodies that take little when compressed are accepted within one second: after it is
// compressed, a body counts only for what is written.
func TestCompressibleBodiesCountForWhatIsWritten(t *testing.T) {
	e := webhookEnv(t)
	h := e.both()
	for n := range 14 {
		d := webhookPush("")
		d.key, d.message.Padding = fmt.Sprint("own-", n), strings.Repeat(" many small files", 58<<10)
		e.check(http.StatusAccepted, e.send(h, d.signed(repositorySecret).request()))
	}
	e.wantEvents(14)
}
