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
	e := newEnv(t)
	declared := push("k").request()
	declared.ContentLength = receiver.MaxBodyBytes + 1
	body := &endless{}
	chunked := httptest.NewRequest(http.MethodPost, "/", body)
	chunked.Header = push("k").request().Header
	e.check(http.StatusRequestEntityTooLarge, e.send(e.replica(), declared))
	e.check(http.StatusRequestEntityTooLarge, e.send(e.replica(), chunked))
	if body.read > receiver.MaxBodyBytes+(1<<20) {
		t.Errorf("read %d bytes of a body that is too large", body.read)
	}
}

// waiting is a body that reports when it is read, and ends when it is released.
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
	e := newEnv(t)
	h := e.replica()
	large := func(rest io.Reader) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), rest))
		r.Header = push("k").request().Header
		return r
	}
	for range 2 { // the second time shows that the slots were released, however the reading ended
		reached, release := make(chan struct{}), make(chan struct{})
		var busy sync.WaitGroup
		for _, ends := range []error{io.EOF, io.ErrUnexpectedEOF} {
			body := &waiting{reached: reached, release: release, ends: ends}
			busy.Go(func() { e.send(h, large(body)) })
			select {
			case <-reached:
			case <-time.After(10 * time.Second):
				t.Fatal("a large body got no slot")
			}
		}
		e.check(http.StatusServiceUnavailable, e.send(h, large(http.NoBody)))
		e.check(http.StatusAccepted, e.send(h, push("small").request())) // needs no such slot
		close(release)
		busy.Wait()
	}
}

func TestTwentyMegabytesAreAccepted(t *testing.T) { // A10
	e := newEnv(t)
	d := push("k1")
	d.message.Padding = strings.Repeat(bodyMarker, 20_000_000/len(bodyMarker))
	e.expect(http.StatusAccepted, d)
	event := e.wantEvents(1)[0]
	body, err := blob.Read(t.Context(), e.client.PlumblineV1alpha1().EventPayloads(systemNamespace), event.Spec.Payload)
	if err != nil || len(body) < 19_000_000 {
		t.Errorf("%d bytes, %v; want them all", len(body), err)
	}
}
