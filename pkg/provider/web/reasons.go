// SPDX-License-Identifier: Apache-2.0

package web

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonAddressRefused       = "AddressRefused"
	reasonBadAddress           = "BadAddress"
	reasonBadProxy             = "BadProxy"
	reasonBadReference         = "BadReference"
	reasonFileTooLarge         = "FileTooLarge"
	reasonHubRefuses           = "HubRefuses"
	reasonReferenceNotFound    = "ReferenceNotFound"
	reasonReferenceUnavailable = "ReferenceUnavailable"
	reasonTooManyRedirects     = "TooManyRedirects"
)
