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

// Many large bodies that take little when compressed are accepted together: a body counts for the
// rate only while it is processed.
func TestCompressibleBodiesAreAcceptedTogether(t *testing.T) {
	if raced {
		t.Skip("how many are processed at once depends on how fast they are decoded")
	}
	e := webhookEnv(t)
	e.client.PrependReactor("create", "gitevents", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-time.After(30 * time.Millisecond)
		return false, nil, nil
	})
	h := e.both()
	var together sync.WaitGroup
	for n := range 14 {
		together.Go(func() {
			d := webhookPush("")
			d.key, d.message.Padding = fmt.Sprint("own-", n), strings.Repeat(" many small files", 58<<10)
			e.check(http.StatusAccepted, e.send(h, d.signed(repositorySecret).request()))
		})
	}
	together.Wait()
	e.wantEvents(14)
}
