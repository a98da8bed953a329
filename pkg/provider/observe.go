// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Answered is how a Git service bore a call.
type Answered struct {
	Began time.Time
	// Strained tells that the service failed, did not answer, or asked for fewer calls.
	Strained bool
	// Closed is for how long no call fits the service's limits.
	Closed time.Duration
}

// NotMade tells observe of a call that Pace did not let through.
func NotMade(observe func(Answered), began time.Time, err error) {
	f := fault.Of(err)
	if observe != nil && f != nil && (f.Reason == fault.ReasonBusy || f.Reason == ReasonPaced) {
		observe(Answered{Began: began, Closed: f.RetryAfter})
	}
}

// Observed tells observe of a call that began then and ended with err.
func Observed(observe func(Answered), began time.Time, err error) {
	f := fault.Of(err)
	if observe == nil || f != nil && f.Reason == fault.ReasonCanceled {
		return
	}
	code := StatusCode(err)
	failed := code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	observe(Answered{Began: began, Strained: failed || f != nil && code == 0 && f.Class == fault.Transient})
}
