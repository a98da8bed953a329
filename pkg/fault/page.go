// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unexpected: the body was not a Status; a proxy or load balancer answered.
func (a *answer) unexpected() bool {
	return apierrors.HasStatusCause(a.err, metav1.CauseTypeUnexpectedServerResponse)
}

// page: K31, the answer is not in the API server's format, so it is from a proxy. It says nothing
// about the object, and its text decides nothing. The one page of the API server itself is "404
// page not found" (K19).
func (a *answer) page(code int32) *Error {
	switch code {
	case http.StatusUnauthorized:
		return a.make(Transient, ReasonUnauthorized, false)
	case http.StatusForbidden:
		return a.make(Operator, ReasonForbidden, false)
	case http.StatusNotFound:
		return a.notFound()
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return a.make(Operator, ReasonNotSupported, false)
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return a.make(Transient, ReasonTimeout, a.verb.writes())
	case http.StatusTooManyRequests:
		return a.throttled()
	}
	return a.make(Transient, ReasonUnavailable, a.verb.writes())
}
