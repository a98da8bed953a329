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
	outcomeForwarded   = "forwarded"
	outcomeIgnored     = "ignored"
	outcomeRejected    = "rejected"
	outcomeUnavailable = "unavailable"
)

// answer is the answer to a delivery, and the reason for it.
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
	// event is the GitEvent that records the delivery. shown and runs are what the answer to a
	// request to /incoming says: the event, and its PipelineRuns.
	event, shown string
	runs         []runName
	// delayed answers are sent late, so that their time does not show what was looked up.
	delayed bool
	// text is what Pipelines-as-Code has answered.
	text string
}

func recorded(name string) *answer {
	return &answer{
		status:  http.StatusAccepted,
		outcome: outcomeRecorded,
		reason:  "Recorded",
		message: "recorded as " + name,
		event:   name,
	}
}

func duplicate(name string) *answer {
	return &answer{
		status:  http.StatusAccepted,
		outcome: outcomeDuplicate,
		reason:  "AlreadyRecorded",
		message: "already recorded as " + name,
		event:   name,
	}
}

// ignored answers 200: the service must not see an error for what is never acted on (A12).
func ignored(reason, message string) *answer {
	return &answer{status: http.StatusOK, outcome: outcomeIgnored, reason: reason, message: cut(message)}
}

func rejected(status int, reason, message string) *answer {
	return &answer{status: status, outcome: outcomeRejected, reason: reason, message: cut(message)}
}

func appUnauthenticated() *answer {
	return rejected(http.StatusUnauthorized, reasonUnauthenticated, "this delivery's signature is missing or wrong: "+
		"check that the webhook secret of the App is the one in Plumbline's Secret")
}

// unauthenticated answers every sender that knows no secret with the same bytes, whether there is a
// Repository or not (S34). The reason and the detail are for the operator.
func unauthenticated(reason, detail string) *answer {
	a := rejected(
		http.StatusUnauthorized,
		reason,
		"this webhook's secret token was not accepted. Check that a Repository with this project's URL exists, "+
			"that it has git_provider.webhook_secret, and that the token matches. The log of Plumbline's receiver says which",
	)
	a.detail, a.delayed = detail, true
	return a
}

func tooManyUnverified() *answer {
	a := rejected(http.StatusServiceUnavailable, reasonTooManyUnverified,
		"too many deliveries whose secret token is not accepted: send this one again in a moment")
	a.retryAfter, a.delayed = retryAfter, true
	return a
}

// unavailable answers 503: the delivery is not recorded and must be sent again. The cause is logged
// and not answered, because it names objects of the cluster.
func unavailable(message string, cause error) *answer {
	a := &answer{
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

func secretUnavailable(err error) *answer {
	return unavailable("the webhook secret cannot be read at the moment: send the delivery again later; "+
		"the log of Plumbline's receiver names the Secret", err)
}

// undecoded answers a delivery that cannot be decoded, or is never acted on.
func undecoded(err error) *answer {
	f := fault.Of(err)
	if f.Class == fault.Ignored {
		return ignored(f.Reason, f.Message)
	}
	return rejected(http.StatusBadRequest, f.Reason, f.Message)
}

// notFound answers a delivery for which Lookup.Find returned an error.
func notFound(err error) *answer {
	switch f := fault.Of(err); {
	case f.Class == fault.Ignored:
		return undecoded(err)
	case f.Reason == fault.ReasonNotClaimedYet:
		return unavailable("the Repository of this URL is not served yet: send the delivery again in a moment", err)
	}
	return unavailable("the Repository cannot be looked up at the moment: send the delivery again later", err)
}

func (a answer) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Status  int       `json:"status"`
		Message string    `json:"message"`
		Event   string    `json:"event,omitempty"`
		Runs    []runName `json:"pipelineRuns,omitempty"`
	}{a.status, a.message, a.shown, a.runs})
	if err != nil { // ints and strings always marshal
		body = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	body = append(body, '\n')
	if a.outcome == outcomeForwarded {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		body = []byte(a.text)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retryAfter+time.Second-1)/time.Second)))
	}
	if a.status == http.StatusMethodNotAllowed {
		h.Set("Allow", http.MethodPost)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // an error means that the client is gone
}

// cut bounds text that may come from the sender.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= maxLogText {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogText], "") + "…"
}
