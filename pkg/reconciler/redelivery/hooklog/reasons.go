// SPDX-License-Identifier: Apache-2.0

package hooklog

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonCalled            = "Called"
	reasonNoDeliveryLog     = "NoDeliveryLog"
	reasonPermissionMissing = "PermissionMissing"
	reasonWebhookDisabled   = "WebhookDisabled"
	reasonWebhookNotFound   = "WebhookNotFound"
	reasonWebhookPaused     = "WebhookPaused"
)
