// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Fault is a scripted misbehaviour, the same type as package forge's: its actions without a GitHub
// answer (Hold, Drop, ApplyThenDrop, ApplyThenAnswer and so on) do as well here.
type Fault = traffic.Fault

// FaultHandle is an injected fault.
type FaultHandle = traffic.FaultHandle

// Action is what a fault does with a call.
type Action = traffic.Action

func say(a answer) Action { return traffic.Say(func(traffic.Call) answer { return a }) }

// RateLimited is the 429 of a client that asked too much, until reset.
func RateLimited(now, reset time.Time) Action { return say(throttled(now, reset)) }

// Unauthorized401 is the answer to a token GitLab does not know.
func Unauthorized401() Action { return say(unauthorized()) }

// Revoked401 is the answer to a token that was good once.
func Revoked401() Action {
	return say(badToken("Token was revoked. You have to re-authorize from the user."))
}

// Forbidden403 is the answer to a user who lacks the level.
func Forbidden403() Action { return say(forbidden()) }

// InsufficientScope403 is the answer to a token that lacks the scope api.
func InsufficientScope403() Action { return say(insufficientScope(ScopeAPI)) }

// NotFound404 is the answer for a project that is missing or hidden.
func NotFound404() Action { return say(notFound("Project")) }

// Conflict409 is the answer to a status while another one of the same commit is being written.
func Conflict409() Action {
	return say(refuse(http.StatusConflict, "Another update to this commit status is in progress"))
}

// CannotTransition400 is the answer to a status that does not take a state by
// the event (enqueue, run, skip) from the state it is in.
func CannotTransition400(event, from string) Action {
	return say(refuse(http.StatusBadRequest, cannotTransition(event, from)))
}

// ReadOnly503 is the answer to a write during maintenance.
func ReadOnly503() Action {
	return say(refuse(http.StatusServiceUnavailable, "You cannot perform write operations on a read-only instance"))
}

// InternalError500 is the answer when GitLab itself breaks.
func InternalError500() Action {
	return say(refuse(http.StatusInternalServerError, "500 Internal Server Error"))
}
