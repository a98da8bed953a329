// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// A body that arrives at the minimum rate is accepted, however long it takes.
func TestBodyAtTheMinimumRateIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		_, listener, wait := servePipes(ctx, t)
		defer func() { stop(); wait() }()
		d := push("k1")
		d.message.Padding = strings.Repeat(bodyMarker, (3<<19)/len(bodyMarker))
		body := mustBody(d)
		conn, _ := listener.dial(ctx, "", "")
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, headers(d, length(len(body)))); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(500 * time.Millisecond) // the sender's pace
		defer tick.Stop()
		for part := range slices.Chunk(body, 200<<10) {
			<-tick.C
			if _, err := conn.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if status, text := answered(t, conn); status != http.StatusAccepted {
			t.Errorf("answered %d %s, want 202", status, text)
		}
	})
}

func TestLargestBodyIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f, listener, wait := servePipes(ctx, t)
		defer func() { stop(); wait() }()
		for _, size := range []int{receiver.MaxBodyBytes, 1 << 20, 1<<20 + 1} {
			d := push(fmt.Sprint("k", size))
			d.message.Padding = ""
			d.message.Padding = strings.Repeat("x", size-len(mustBody(d)))
			texts := map[string]string{
				"in chunks": headers(d, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, mustBody(d)),
			}
			if size < receiver.MaxBodyBytes { // once is enough of the largest
				texts["with its length"] = whole(d)
			}
			for name, text := range texts {
				conn, _ := listener.dial(ctx, "", "")
				defer func() { _ = conn.Close() }()
				go func() { _, _ = io.WriteString(conn, text) }()
				if status, text := answered(t, conn); status != http.StatusAccepted {
					t.Errorf("%d bytes %s: answered %d %s, want 202", size, name, status, text)
				}
			}
		}
		synctest.Wait()
		if _, _, bytes := f.server.Open(); bytes != 0 {
			t.Errorf("%d bytes are reserved after all was answered", bytes)
		}
	})
}
