// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"
)

// DeliveryLog is the service's log of its deliveries to the App's one webhook.
type DeliveryLog interface {
	// Page returns some attempts, newest first, and the cursor of the next, older page, "" for
	// none. The first page has the cursor "". A service may forget a cursor: after an error the
	// caller starts again at the first page.
	Page(ctx context.Context, cursor string) (attempts []Attempt, next string, err error)
	// Redeliver asks the service to make another attempt with the same content as the one with this
	// id. The service makes it later; it shows in the log when it has ended. An attempt that the
	// service no longer has is an Ignored fault.
	Redeliver(ctx context.Context, id int64) error
}

// HookLog is the webhooks of one repository and the service's log of their deliveries. If the
// credentials do not permit to read it, the error is an Operator fault with reason
// PermissionMissing.
type HookLog interface {
	// Hooks returns all webhooks of the repository, without those of groups that it is in.
	Hooks(ctx context.Context) ([]Hook, error)
	// Attempts returns one page of attempts to call a webhook, newest first, and whether there may
	// be older ones. The first page is 1. With failed it returns only attempts without an answer or
	// with a 5xx answer. An attempt has no Repository, and no At if the service does not say. IDs
	// grow with time, except among attempts made at the same time. A service without such a log is
	// an Ignored fault.
	Attempts(ctx context.Context, hook int64, failed bool, page int) (attempts []Attempt, more bool, err error)
	// Resend makes another attempt with the same content and returns the HTTP status of its answer,
	// 0 for no answer. An attempt that can no longer be sent again is an Ignored fault; too many in
	// a minute are Throttled. ResendsAtOnce in ResendsEvery are allowed for one repository.
	Resend(ctx context.Context, hook, attempt int64) (status int, err error)
	// Heads returns where the default branch is, and the heads of the 20 newest open pull requests
	// that have changed since. An empty repository has none.
	Heads(ctx context.Context, since time.Time) ([]Head, error)
	// Moved returns when a pull request's head last moved, zero if the service does not say.
	Moved(ctx context.Context, pull int64) (time.Time, error)
}
