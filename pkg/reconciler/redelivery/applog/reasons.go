// SPDX-License-Identifier: Apache-2.0

package applog

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonConflict          = "Conflict"
	reasonLedgerMissing     = "LedgerMissing"
	reasonNamespacesUnknown = "NamespacesUnknown"
	reasonNoClaims          = "NoClaims"
)
