// SPDX-License-Identifier: Apache-2.0

package hooks

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonDeliveryGone = "DeliveryGone"
	reasonHookPaused   = "HookPaused"
	reasonNoHookLog    = "NoHookLog"
)
