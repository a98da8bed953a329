// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// Origin is what a delivery says before it is verified. It serves only to find the Repository and
// its secret.
type Origin struct {
	// URL is the repository's web URL as the payload claims; empty when the delivery names no
	// repository (ping).
	URL string
	// App is true when the delivery belongs to the App, whose one secret is known before the
	// Repository is.
	App bool
	// DeliveryKey is the service's id of the delivery. Logs show it, so that people find the
	// delivery at the service.
	DeliveryKey string
	// Event is the service's name of the event ("push"), for logs and metrics.
	Event string
	// Push is true for what only users with write access cause: pushes of branches and tags.
	Push bool
}

// Credentials are what Connect authenticates with. They are never logged.
type Credentials struct {
	// AppID and PrivateKey (PEM) authenticate a GitHub App, with InstallationID.
	AppID          int64
	PrivateKey     []byte
	InstallationID int64
	// User and Token authenticate everything else.
	User  string
	Token string
	// Shared is true for credentials of the global Repository, which other tenants use as well.
	// With them nothing outside the project is read.
	Shared bool
	// Quiet is true if the Repository wants no comments about results.
	Quiet bool
	// From says where they are stored, for messages: "secret plumbline/app".
	From string
	// Reach says which Git services may be called with them besides those on the public internet.
	Reach egress.Policy
	// Observe receives the outcome of each call; nil for none. Many goroutines call it.
	Observe func(CallResult)
	// Expires receives, after a call, when Token expires: zero if the service does not say. It is
	// nil for none. Many goroutines call it.
	Expires func(at time.Time)
}

// Comment is a comment on a pull request that is edited in place.
type Comment struct {
	// Mark is how the comment begins: by it the comment is found.
	Mark string
	// Text is Markdown that begins with the mark.
	Text string
	// OnlyEdit is true if no comment is created.
	OnlyEdit bool
}

// Token is a credential for the pods of a run. It is never logged.
type Token struct {
	Value string
	// User goes with it; empty where the service looks at the token alone.
	User string
	// ExpiresAt is when the service stops accepting it, by the service's clock; zero when the
	// service does not say.
	ExpiresAt time.Time
	// Own is true when the token was minted for the caller alone, who revokes it when it is no
	// longer needed. It is false where the service mints none and the token is the configured one.
	Own bool
}

// Attempt is one attempt of a Git service to make a delivery, from the service's log.
type Attempt struct {
	// ID is the attempt's; all attempts to deliver the same thing have the same GUID.
	ID   int64
	GUID string
	// At is when it was made, by the service's clock.
	At time.Time
	// Status is the HTTP status of the answer. Without an answer it is 0, or what the service
	// reports instead.
	Status int
	// Again is true for an attempt that was requested.
	Again bool
	// Starts is true for a kind of event that may start a run. Only these are worth redelivering.
	Starts bool
	// Repository is the service's id of the repository; 0 for an event without one.
	Repository int64
}

// Succeeded reports whether the receiver has acknowledged the delivery.
func (a *Attempt) Succeeded() bool {
	return a.Status >= http.StatusOK && a.Status < http.StatusMultipleChoices
}

// HookState says whether a Git service calls a webhook.
type HookState string

// The states of a webhook.
const (
	// HookCalled is the state of a webhook that the service calls.
	HookCalled HookState = "called"
	// HookPaused is the state of a webhook that the service does not call for a while, because its
	// last calls failed.
	HookPaused HookState = "paused"
	// HookDisabled is the state of a webhook that the service does not call until a user enables
	// it.
	HookDisabled HookState = "disabled"
)

// Hook is a webhook of a repository.
type Hook struct {
	ID int64
	// Project is the service's id of the repository.
	Project int64
	// URL is the address that is called. Parts that the service keeps secret are masked.
	URL   string
	State HookState
	// Until is when a pause ends; zero if the service does not say.
	Until time.Time
	// Pushes and Pulls report whether the webhook is called for all pushes of branches, and for
	// pull requests.
	Pushes, Pulls bool
}

// Head is the commit of the default branch or of an open pull request.
type Head struct {
	// Pull is the number of the pull request, 0 for the default branch.
	Pull int64
	// Branch is the default branch, or the source branch of the pull request.
	Branch, SHA string
	// At is when the commit was made; zero for a pull request.
	At time.Time
}

// ResendsEvery is the time in which a HookLog may be asked for ResendsAtOnce attempts of one
// repository: GitLab's limit for one user in a project
// (https://docs.gitlab.com/api/project_webhooks).
const (
	ResendsEvery  = time.Minute
	ResendsAtOnce = 5
)
