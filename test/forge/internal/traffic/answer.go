// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"net/http"
)

// Answer is what a route says, before faults change it.
type Answer struct {
	Status int
	Header http.Header
	Body   any    // encoded as JSON; nil sends no body
	Raw    []byte // sent as it is when Body is nil
}

// With returns the answer with one more header.
func (a Answer) With(key, value string) Answer {
	h := a.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(key, value)
	a.Header = h
	return a
}

// OrHeader returns the answer with the header unless it has it.
func (a Answer) OrHeader(key, value string) Answer {
	if a.Header.Get(key) != "" {
		return a
	}
	return a.With(key, value)
}

// Send writes the answer. A client that has gone is not an error of the forge.
func (a Answer) Send(w http.ResponseWriter) {
	body := a.Raw
	if a.Body != nil {
		b, err := json.Marshal(a.Body)
		if err != nil {
			http.Error(w, "forge: "+err.Error(), http.StatusInternalServerError)
			return
		}
		body = b
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	for k, vs := range a.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = vs
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(body)
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
			return
		}
	}
	// Where the connection cannot be taken over, net/http's own way to abort.
	panic(http.ErrAbortHandler)
}
