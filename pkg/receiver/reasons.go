// SPDX-License-Identifier: Apache-2.0

package receiver

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadRepository     = "BadRepository"
	reasonBadRepositoryURL  = "BadRepositoryURL"
	reasonBodyIncomplete    = "BodyIncomplete"
	reasonMethodNotAllowed  = "MethodNotAllowed"
	reasonNoConfiguration   = "NoConfiguration"
	reasonNoRepository      = "NoRepository"
	reasonNoWebhookSecret   = "NoWebhookSecret"
	reasonNotTheApp         = "NotTheApp"
	reasonOtherHost         = "OtherHost"
	reasonPanic             = "Panic"
	reasonServedByWebhook   = "ServedByWebhook"
	reasonTooLarge          = "TooLarge"
	reasonTooManyUnverified = "TooManyUnverified"
	reasonTooSlow           = "TooSlow"
	reasonUnauthenticated   = "Unauthenticated"
	reasonUnknownService    = "UnknownService"
)
