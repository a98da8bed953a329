// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Refused is the fault of credentials that the service does not accept (401). It holds the remedy
// and the service's own words, not which call was made: the same fault of many events is one
// message. The answer's status is hidden from callers, who could take it for an answer about their
// object.
func Refused(err error, remedy string) *fault.Error {
	var answer *StatusError
	if errors.As(err, &answer) && answer.Message != "" {
		remedy += " (it says: " + answer.Message + ")"
	}
	return fault.Operatorf(fault.ReasonCredentialsRefused, "%s", remedy)
}
