// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// CallResult is the outcome of a call to a Git service.
type CallResult struct {
	Began time.Time
	// Strained is true if the service failed, did not answer, or asked for fewer calls.
	Strained bool
	// Closed is for how long the service's limits allow no call.
	Closed time.Duration
}

// ReportUnmade reports to observe a call that Pace did not allow.
func ReportUnmade(observe func(CallResult), began time.Time, err error) {
	f := fault.Of(err)
	if observe != nil && f != nil && (f.Reason == fault.ReasonBusy || f.Reason == ReasonPaced) {
		observe(CallResult{Began: began, Closed: f.RetryAfter})
	}
}

// ReportCall reports to observe a call that started at began and ended with err.
func ReportCall(observe func(CallResult), began time.Time, err error) {
	f := fault.Of(err)
	if observe == nil || f != nil && f.Reason == fault.ReasonCanceled {
		return
	}
	code := StatusCode(err)
	failed := code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	observe(CallResult{Began: began, Strained: failed || f != nil && code == 0 && f.Class == fault.Transient})
}
