// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"
)

// HookState is what a Git service thinks of a webhook.
type HookState string

// The states of a webhook.
const (
	// HookCalled is one that the service calls.
	HookCalled HookState = "called"
	// HookPaused is one that it does not call for a while, because its last calls have failed.
	HookPaused HookState = "paused"
	// HookDisabled is one that it does not call until somebody enables it.
	HookDisabled HookState = "disabled"
)

// Hook is a webhook of a repository.
type Hook struct {
	ID int64
	// Project is the service's number of the repository.
	Project int64
	// URL is where it leads. Parts that the service keeps secret are masked.
	URL   string
	State HookState
	// Until is when a pause ends; zero if the service does not tell.
	Until time.Time
	// Pushes and Pulls report whether it is called for all pushes of branches, and for pull
	// requests.
	Pushes, Pulls bool
}

// Head is where the default branch or an open pull request is.
type Head struct {
	// Pull is the number of the pull request, 0 for the default branch.
	Pull int64
	// Branch is the default branch, or the source branch of the pull request.
	Branch, SHA string
	// At is when the commit was made, of a pull request zero.
	At time.Time
}

// HookLog is the webhooks of one repository, and what its Git service remembers of their
// deliveries. What the credentials may not see is an Operator fault with reason PermissionMissing.
type HookLog interface {
	// Hooks returns all webhooks of the repository, without those of groups that it is in.
	Hooks(ctx context.Context) ([]Hook, error)
	// Attempts returns one page of attempts to call a webhook, the newest first, and whether there
	// may be older ones. The first page is 1. With failed it has those that nobody has answered, or
	// that were answered 5xx. Repository of an attempt is not set, nor is At if the service does
	// not tell; IDs grow with time, but for those of attempts that are made together. A service
	// without such a log is an Ignored fault.
	Attempts(ctx context.Context, hook int64, failed bool, page int) (attempts []Attempt, more bool, err error)
	// Resend makes another attempt with the same content as this one, and returns what it was
	// answered with, 0 for no answer. What cannot be sent again any more is an Ignored fault; too
	// many in a minute is a Throttled one.
	Resend(ctx context.Context, hook, attempt int64) (status int, err error)
	// Heads returns where the default branch is and the open pull requests that have changed since,
	// the newest 20 of these. An empty repository has none.
	Heads(ctx context.Context, since time.Time) ([]Head, error)
	// Moved returns when a pull request's head moved last, zero if the service does not tell.
	Moved(ctx context.Context, pull int64) (time.Time, error)
}

// ResendsEvery is the time in which a HookLog may be asked for ResendsAtOnce attempts of one
// repository: GitLab allows so many to a user in a project
// (https://docs.gitlab.com/api/project_webhooks).
const (
	ResendsEvery  = time.Minute
	ResendsAtOnce = 5
)
