// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The outcomes of a delivery, as logged and counted.
const (
	outcomeRecorded    = "recorded"
	outcomeDuplicate   = "duplicate"
	outcomeIgnored     = "ignored"
	outcomeRejected    = "rejected"
	outcomeUnavailable = "unavailable"
)

// answer is what a delivery is answered with, and why.
type answer struct {
	status  int
	message string
	outcome string
	// reason is one CamelCase word for logs and metrics.
	reason string
	// retryAfter is sent with 503.
	retryAfter time.Duration
	// cause and detail are for the operator's log only.
	cause  error
	detail string
	// late is set when the time must not tell what was looked up.
	late bool
}

func recorded(name string) answer {
	return answer{
		status:  http.StatusAccepted,
		outcome: outcomeRecorded,
		reason:  "Recorded",
		message: "recorded as " + name,
	}
}

func duplicate(name string) answer {
	return answer{
		status:  http.StatusAccepted,
		outcome: outcomeDuplicate,
		reason:  "AlreadyRecorded",
		message: "already recorded as " + name,
	}
}

// ignored answers 200: the service must not see an error for what is never acted on (A12).
func ignored(reason, message string) answer {
	return answer{status: http.StatusOK, outcome: outcomeIgnored, reason: reason, message: cut(message)}
}

func rejected(status int, reason, message string) answer {
	return answer{status: status, outcome: outcomeRejected, reason: reason, message: cut(message)}
}

// unbelieved answers everybody who proves nothing with the same bytes, whether there is a
// Repository or not (S34). The reason and the detail are for the operator.
func unbelieved(reason, detail string) answer {
	a := rejected(
		http.StatusUnauthorized,
		reason,
		"nobody vouches for this delivery: its secret token is not the one of a Repository with the project's URL, "+
			"or there is no such Repository, or it names no webhook secret; the log of Plumbline's receiver tells which",
	)
	a.detail, a.late = detail, true
	return a
}

// unavailable answers 503: the delivery is not recorded and has to come again. What the cause says
// is logged and not answered, because it names objects of the cluster.
func unavailable(message string, cause error) answer {
	a := answer{
		status:     http.StatusServiceUnavailable,
		outcome:    outcomeUnavailable,
		reason:     "Overloaded",
		message:    message,
		retryAfter: retryAfter,
	}
	if f := fault.Of(cause); f != nil {
		a.reason, a.cause = f.Reason, cause
		if f.RetryAfter > 0 {
			a.retryAfter = min(f.RetryAfter, maxRetryAfter)
		}
	}
	return a
}

// undecoded answers what Peek and Decode refuse.
func undecoded(err error) answer {
	f := fault.Of(err)
	if f.Class == fault.Ignored {
		return ignored(f.Reason, f.Message)
	}
	return rejected(http.StatusBadRequest, f.Reason, f.Message)
}

func (a answer) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	}{a.status, a.message})
	if err != nil { // an int and a string always marshal
		body = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retryAfter+time.Second-1)/time.Second)))
	}
	if a.status == http.StatusMethodNotAllowed {
		h.Set("Allow", http.MethodPost)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone has nothing to be told
}

// cut bounds text that may come from the sender.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= maxLogText {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogText], "") + "…"
}
