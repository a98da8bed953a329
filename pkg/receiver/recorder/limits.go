// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"time"
)

const (
	// DefaultCallTimeout bounds each call to the API server, so that a call that hangs leaves time
	// to answer 503. The flag -api-wait changes it.
	DefaultCallTimeout = 3 * time.Second
	// ConfirmTimeout bounds the one read that resolves a create whose outcome is unknown. It comes
	// on top of the delivery's own time, which that create may have exhausted.
	ConfirmTimeout = time.Second

	// eagerCompression is up to which size a body is compressed before anything is looked up. A
	// larger one is compressed once it is known that it is stored.
	eagerCompression = 1 << 20

	// quotaRetry is the Retry-After of a delivery for which a quota of unsettled events is
	// exhausted. They settle when a user fixes something, so an earlier retry is of no use.
	quotaRetry = 5 * time.Minute

	// payloadReuse is for how long another attempt at the same delivery takes over the payload that
	// an earlier one wrote. It is half of the age at which the sweep deletes a payload without an
	// event. The other half allows for clocks that differ.
	payloadReuse = 30 * time.Minute
	// recentTime is the age of an event up to which no record of it can have been deleted: the
	// sweep leaves each stub for half an hour. The 20 minutes between allow for clocks that differ:
	// clockTolerance for ours and the API server's, the rest for the Git service's and the
	// controllers'.
	recentTime = 10 * time.Minute
	// clockTolerance is more than synchronised clocks differ, and more than any create takes.
	clockTolerance = 5 * time.Minute
	// clockAge is how long a comparison with the API server's clock is valid. A receiver without
	// deliveries in that time needs two more reads for the next one.
	clockAge = 10 * time.Minute
	// noteInterval is the least time between two notes of a redelivery in one record. The retention
	// is at least a day longer than Git services send a delivery again.
	noteInterval = time.Hour

	// maxReopened is how often one delivery may be processed again under a new name.
	maxReopened = 20
	// maxQuotaRaces is how often a create is sent that a ResourceQuota's bookkeeping answers with a
	// conflict.
	maxQuotaRaces = 4
	// maxNameRaces is how often one name is looked up again because another replica wrote it in
	// between.
	maxNameRaces = 3
)

// CallTimeout is how long a call to the API server may take; zero is DefaultCallTimeout.
type CallTimeout time.Duration

// Scale returns a time in proportion to the timeout: byDefault for DefaultCallTimeout.
func (t CallTimeout) Scale(byDefault time.Duration) time.Duration {
	if t <= 0 {
		return byDefault
	}
	return time.Duration(byDefault.Seconds() / DefaultCallTimeout.Seconds() * float64(t))
}

// Context returns a context for one call to the API server.
func (t CallTimeout) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.Scale(DefaultCallTimeout))
}
