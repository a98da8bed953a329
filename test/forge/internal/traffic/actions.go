// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"net/http"
	"time"
)

// Action is what a fault does with a call. Take one of the constructors.
type Action func(*Hit) Outcome

// Hit is a call on its way, with the forge's own view of it.
type Hit struct {
	Call Call

	core     *Core
	exchange Exchange
	n        int
}

// Outcome is what the client sees and what was written.
type Outcome struct {
	answer  Answer
	applied bool
	status  *int // of the logged write, when the call was applied
	drop    bool
}

// until waits for ch, the client's departure or the end of the forge; it tells
// whether ch came first.
func (h *Hit) until(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-h.exchange.R.Context().Done():
	case <-h.core.done:
	}
	return false
}

// Reply answers as it is, without doing what was asked.
func Reply(a Answer) Action { return func(*Hit) Outcome { return Outcome{answer: a} } }

// Answered answers without doing what was asked.
func Answered(code int, header http.Header, body string) Action {
	scripted := Answer{Status: code, Header: header.Clone(), Raw: []byte(body)}
	if header.Get("Content-Type") == "" && json.Valid(scripted.Raw) {
		scripted = scripted.With("Content-Type", "application/json; charset=utf-8")
	}
	return Reply(scripted)
}

// Say answers what the forge would say, with the headers it gives every
// answer, without doing what was asked. make runs under the lock.
func Say(make func(Call) Answer) Action {
	return func(h *Hit) Outcome {
		h.core.Mu.Lock()
		defer h.core.Mu.Unlock()
		return Outcome{answer: h.Call.Finish(make(h.Call))}
	}
}

// EdgeDown answers the page of the forge's edge without doing what was asked.
func EdgeDown(code int) Action {
	return func(h *Hit) Outcome { return Outcome{answer: h.Call.EdgePage(code)} }
}

// Hang keeps the call without doing it until until is closed, the client goes
// away or the forge closes; then the connection is dropped. A nil until never ends.
func Hang(until <-chan struct{}) Action {
	return func(h *Hit) Outcome {
		h.until(until)
		return Outcome{drop: true}
	}
}

// Drop closes the connection without doing or answering anything.
func Drop() Action { return func(*Hit) Outcome { return Outcome{drop: true} } }

// ApplyThenEdgeDown does what was asked and answers with code and the body of
// a broken edge: the client cannot know that it landed.
func ApplyThenEdgeDown(code int) Action {
	return func(h *Hit) Outcome {
		out := h.apply()
		out.answer = h.Call.EdgePage(code)
		return out
	}
}

// ApplyThenDrop does what was asked and closes the connection.
func ApplyThenDrop() Action {
	return func(h *Hit) Outcome {
		out := h.apply()
		out.drop = true
		return out
	}
}

// Hold does nothing until release is closed or sends, then does what was
// asked and answers it. If the client or the forge goes first, nothing is done.
func Hold(release <-chan struct{}) Action {
	return func(h *Hit) Outcome {
		if !h.until(release) {
			return Outcome{drop: true}
		}
		return h.apply()
	}
}

// Delay is Hold with a release that comes so much later.
func Delay(d time.Duration) Action {
	return func(h *Hit) Outcome {
		release := make(chan struct{})
		timer := time.AfterFunc(d, func() { close(release) })
		defer timer.Stop()
		return Hold(release)(h)
	}
}

// ApplyThenHold does what was asked, then keeps the answer until release.
func ApplyThenHold(release <-chan struct{}) Action {
	return func(h *Hit) Outcome {
		out := h.apply()
		if !h.until(release) {
			out.drop = true
		}
		return out
	}
}
