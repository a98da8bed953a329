// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

func TestTooLarge(t *testing.T) { // A10
	w := newEnv(t)
	declared := push("k").request()
	declared.ContentLength = receiver.MaxBodyBytes + 1
	body := &endless{}
	chunked := httptest.NewRequest(http.MethodPost, "/", body)
	chunked.Header = push("k").request().Header
	w.check(http.StatusRequestEntityTooLarge, w.send(w.replica(), declared))
	w.check(http.StatusRequestEntityTooLarge, w.send(w.replica(), chunked))
	if body.read > receiver.MaxBodyBytes+(1<<20) {
		t.Errorf("read %d bytes of a body that is too large", body.read)
	}
}

// waiting is a body that shows when it is read, and goes on when it is told to.
type waiting struct {
	reached, release chan struct{}
	ends             error
}

func (b *waiting) Read(p []byte) (int, error) {
	b.reached <- struct{}{}
	<-b.release
	return 0, b.ends
}

func TestLargeBodiesAreFewAtOnce(t *testing.T) {
	w := newEnv(t)
	h := w.replica()
	large := func(rest io.Reader) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), rest))
		r.Header = push("k").request().Header
		return r
	}
	for range 2 { // the second time shows that the slots were given back, however the reading ended
		reached, release := make(chan struct{}), make(chan struct{})
		var busy sync.WaitGroup
		for _, ends := range []error{io.EOF, io.ErrUnexpectedEOF} {
			body := &waiting{reached: reached, release: release, ends: ends}
			busy.Go(func() { w.send(h, large(body)) })
			select {
			case <-reached:
			case <-time.After(10 * time.Second):
				t.Fatal("a large body got no slot")
			}
		}
		w.check(http.StatusServiceUnavailable, w.send(h, large(http.NoBody)))
		w.check(http.StatusAccepted, w.send(h, push("small").request())) // needs no such slot
		close(release)
		busy.Wait()
	}
}

func TestTwentyMegabytesAreAccepted(t *testing.T) { // A10
	w := newEnv(t)
	d := push("k1")
	d.message.Padding = strings.Repeat(bodyMarker, 20_000_000/len(bodyMarker))
	w.expect(http.StatusAccepted, d)
	event := w.wantEvents(1)[0]
	body, err := blob.Read(t.Context(), w.client.PlumblineV1alpha1().EventPayloads(systemNamespace), event.Spec.Payload)
	if err != nil || len(body) < 19_000_000 {
		t.Errorf("%d bytes, %v; want them all", len(body), err)
	}
}
