// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"time"
)

// Attempt is one try of a Git service to deliver something, as the service's log has it.
type Attempt struct {
	// ID is the attempt's; GUID is what all attempts to deliver the same thing have in common.
	ID   int64
	GUID string
	// At is when it was made, by the service's clock.
	At time.Time
	// Status is what it was answered with; 0 for no answer, and where the service says something
	// else then, that.
	Status int
	// Again is true for an attempt that somebody has asked for.
	Again bool
	// Starts reports whether an event of this kind may start a run: nobody misses the others.
	Starts bool
	// Repository is the service's number of it; 0 for an event of none.
	Repository int64
}

// Succeeded reports whether the receiver has acknowledged the delivery.
func (a *Attempt) Succeeded() bool {
	return a.Status >= http.StatusOK && a.Status < http.StatusMultipleChoices
}

// DeliveryLog is what a Git service remembers of its deliveries to one webhook.
type DeliveryLog interface {
	// Page returns some attempts, newest first, and the cursor of the page with older ones, "" for
	// none. The first page has the cursor "". A service may forget a cursor: after an error one
	// begins anew.
	Page(ctx context.Context, cursor string) (attempts []Attempt, next string, err error)
	// Redeliver asks the service to make another attempt with the same content as the one with this
	// id. It is made later, and shows in the log when it has ended. What the service does not have
	// any more is an Ignored fault.
	Redeliver(ctx context.Context, id int64) error
}
