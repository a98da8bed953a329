// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"strconv"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// answer is what a route says, before faults change it.
type answer = traffic.Answer

type object = map[string]any

func ok(body any) answer      { return answer{Status: http.StatusOK, Body: body} }
func created(body any) answer { return answer{Status: http.StatusCreated, Body: body} }
func noContent() answer       { return answer{Status: http.StatusNoContent} }

// refuse is GitHub's error shape.
func refuse(status int, doc, message string) answer {
	return answer{Status: status, Body: object{
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
	a.Body.(object)["errors"] = errs
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
