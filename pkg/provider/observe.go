// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Answered is the outcome of a call to a Git service.
type Answered struct {
	Began time.Time
	// Strained is true if the service failed, did not answer, or requested fewer calls.
	Strained bool
	// Closed is for how long the service's limits allow no call.
	Closed time.Duration
}

// NotMade reports to observe a call that Pace did not allow.
func NotMade(observe func(Answered), began time.Time, err error) {
	f := fault.Of(err)
	if observe != nil && f != nil && (f.Reason == fault.ReasonBusy || f.Reason == ReasonPaced) {
		observe(Answered{Began: began, Closed: f.RetryAfter})
	}
}

// Observed reports to observe a call that started at began and ended with err.
func Observed(observe func(Answered), began time.Time, err error) {
	f := fault.Of(err)
	if observe == nil || f != nil && f.Reason == fault.ReasonCanceled {
		return
	}
	code := StatusCode(err)
	failed := code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	observe(Answered{Began: began, Strained: failed || f != nil && code == 0 && f.Class == fault.Transient})
}
