// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// answer is what a route says, before faults change it.
type answer = traffic.Answer

type object = map[string]any

func ok(body any) answer      { return answer{Status: http.StatusOK, Body: body} }
func created(body any) answer { return answer{Status: http.StatusCreated, Body: body} }

// refuse is GitLab's usual error: a message that is a text, or an object of
// lists of texts by field.
func refuse(status int, message any) answer {
	return answer{Status: status, Body: object{"message": message}}
}

// notFound is a 404 that names what is missing.
func notFound(what string) answer { return refuse(http.StatusNotFound, "404 "+what+" Not Found") }

// noRecord is the 404 of a lookup in the database.
func noRecord() answer { return refuse(http.StatusNotFound, "404 Not found") }

func forbidden() answer { return refuse(http.StatusForbidden, "403 Forbidden") }

func unauthorized() answer { return refuse(http.StatusUnauthorized, "401 Unauthorized") }

// badParameter is what the check of parameters in front of the routes answers.
func badParameter(problem string) answer {
	return answer{Status: http.StatusBadRequest, Body: object{"error": problem}}
}

// invalid is the answer to a value that a record does not take.
func invalid(field, problem string) answer {
	return refuse(http.StatusBadRequest, map[string][]string{field: {problem}})
}

// badToken is the answer to a token that was good once.
func badToken(why string) answer {
	a := answer{Status: http.StatusUnauthorized, Body: object{"error": "invalid_token", "error_description": why}}
	return a.With("WWW-Authenticate",
		`Bearer realm="Protected by OAuth 2.0", error="invalid_token", error_description="`+why+`"`)
}

func insufficientScope(scope string) answer {
	return answer{Status: http.StatusForbidden, Body: object{
		"error":             "insufficient_scope",
		"error_description": "The request requires higher privileges than provided by the access token.",
		"scope":             scope,
	}}
}

// stamp is a time in the API, where there is one.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
