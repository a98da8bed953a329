// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// answer is what a route says, before faults change it.
type answer struct {
	status int
	header http.Header
	body   any    // encoded as JSON; nil sends no body
	raw    []byte // sent as it is when body is nil
}

type object = map[string]any

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }
func noContent() answer       { return answer{status: http.StatusNoContent} }

// refuse is GitHub's error shape.
func refuse(status int, doc, message string) answer {
	return answer{status: status, body: object{
		"message":           message,
		"documentation_url": doc,
		"status":            strconv.Itoa(status),
	}}
}

func notFound(doc string) answer { return refuse(http.StatusNotFound, doc, "Not Found") }

// fieldError is an entry of the errors array of a "Validation Failed".
type fieldError struct {
	Resource string `json:"resource"`
	Code     string `json:"code"`
	Field    string `json:"field"`
	Message  string `json:"message,omitempty"`
}

func validationFailed(doc string, errs ...fieldError) answer {
	a := refuse(http.StatusUnprocessableEntity, doc, "Validation Failed")
	a.body.(object)["errors"] = errs
	return a
}

// invalidRequest is what the schema check in front of the routes answers: the
// reasons are lines of the message and there is no errors array.
func invalidRequest(doc string, reasons []string) answer {
	msg := "Invalid request.\n"
	for _, r := range reasons {
		msg += "\n" + r
	}
	return refuse(http.StatusUnprocessableEntity, doc, msg)
}

// with returns the answer with one more header.
func (a answer) with(key, value string) answer {
	h := a.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(key, value)
	a.header = h
	return a
}

// send writes the answer. A client that has gone is not an error of the forge.
func (a answer) send(w http.ResponseWriter) {
	body := a.raw
	if a.body != nil {
		b, err := json.Marshal(a.body)
		if err != nil {
			http.Error(w, "forge: "+err.Error(), http.StatusInternalServerError)
			return
		}
		body = b
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	for k, vs := range a.header {
		w.Header()[http.CanonicalHeaderKey(k)] = vs
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}
