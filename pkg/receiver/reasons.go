// SPDX-License-Identifier: Apache-2.0

package receiver

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadRequest        = "BadRequest"
	reasonBadRepository     = "BadRepository"
	reasonBadRepositoryURL  = "BadRepositoryURL"
	reasonBodyIncomplete    = "BodyIncomplete"
	reasonMethodNotAllowed  = "MethodNotAllowed"
	reasonNoConfiguration   = "NoConfiguration"
	reasonNoRepository      = "NoRepository"
	reasonNoWebhookSecret   = "NoWebhookSecret"
	reasonNotAllowed        = "NotAllowed"
	reasonNotTheApp         = "NotTheApp"
	reasonOtherHost         = "OtherHost"
	reasonPanic             = "Panic"
	reasonServedByWebhook   = "ServedByWebhook"
	reasonTooLarge          = "TooLarge"
	reasonTooManyFailures   = "TooManyFailures"
	reasonTooManyUnverified = "TooManyUnverified"
	reasonTooSlow           = "TooSlow"
	reasonUnauthenticated   = "Unauthenticated"
	reasonUnknownService    = "UnknownService"
)
