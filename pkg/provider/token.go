// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var headerValue = regexp.MustCompile(`^[!-~]+$`)

// TokenOf returns the configured token of a service. kinds says which tokens the service has.
func TokenOf(c Credentials, service, kinds string) (string, error) {
	token := strings.TrimSpace(c.Token)
	switch {
	case token == "":
		return "", fault.Operatorf(fault.ReasonCredentialsMissing,
			"the %s token is missing: set git_provider.secret to a Secret that holds a %s access token", service, kinds)
	case !headerValue.MatchString(token):
		return "", fault.Operatorf(fault.ReasonCredentialsInvalid,
			"the %s token in %s contains spaces or other characters that no token has: set it again", service, c.From)
	}
	return token, nil
}
