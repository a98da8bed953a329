// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// CredentialsRefused returns the fault of credentials that the service does not accept (401). It
// contains the remedy and the service's own words but not which call was made, so that the same
// fault of many events is one message. It does not unwrap to the answer, whose status a caller
// could take for an answer about its object.
func CredentialsRefused(err error, remedy string) *fault.Error {
	var answer *StatusError
	if errors.As(err, &answer) && answer.Message != "" {
		remedy += " (it says: " + answer.Message + ")"
	}
	return fault.Operatorf(fault.ReasonCredentialsRefused, "%s", remedy)
}
