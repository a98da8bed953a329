// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// patience is how long a call waits for the limits before it fails and releases its worker.
	// Other calls usually take well under a second, but 30 s at a service that does not respond.
	patience = 5 * time.Second
	// retryAfter is when a call that gave up is retried.
	retryAfter = 2 * time.Second
	// maxBlock limits how long a service may make us wait: GitHub's windows are one hour.
	maxBlock = 65 * time.Minute
	// writePace is 60 writes a minute. It applies for paceFor after a secondary limit; the interval
	// is halved for each paceFor after that.
	writePace = time.Second
	paceFor   = 5 * time.Minute
	paceSteps = 4
)

// ReasonPaced is the reason of a Throttled fault: a call was not made because it would exceed a
// limit.
const ReasonPaced = "Paced"

// Pace is one process' knowledge of a service's limits for one credential: until when no call may
// be made (G1), how fast to write (G2), what is left of published budgets, and which calls are in
// flight. A process that loses it only makes unnecessary calls. It is safe for concurrent use.
type Pace struct {
	now      func() time.Time
	patience time.Duration
	slots    chan struct{} // nil without a limit of calls in flight
	write    chan struct{} // nil without a limit of writes in flight
	budgets  []budget

	mu      sync.Mutex
	blocked time.Time
	limited time.Time // the last secondary limit
	wrote   time.Time
	alone   map[string]*gate
}

// NewPace returns a Pace that has spent nothing yet.
func NewPace(now func() time.Time, rules Rules) *Pace {
	p := &Pace{now: now, patience: patience, alone: map[string]*gate{}}
	if rules.AtOnce > 0 {
		p.slots = make(chan struct{}, rules.AtOnce)
	}
	if rules.OneWrite {
		p.write = make(chan struct{}, 1)
	}
	for _, b := range rules.Budgets {
		p.budgets = append(p.budgets, newBudget(b))
	}
	return p
}

// Enter waits briefly until the limits allow the call. The caller calls leave when the call has
// ended. A Throttled fault says when to retry.
func (p *Pace) Enter(ctx context.Context, call Call) (leave func(), err error) {
	if err := p.allowed(call, false); err != nil {
		return nil, err
	}
	if err := p.spend(ctx, call); err != nil {
		return nil, err
	}
	var entered []func()
	leave = func() {
		for _, leave := range slices.Backward(entered) {
			leave()
		}
	}
	for _, turn := range []func() (func(), error){
		func() (func(), error) { return p.enterAlone(ctx, call.Alone) },
		func() (func(), error) { return p.enter(ctx, p.writeGate(call)) },
		func() (func(), error) { return p.enter(ctx, p.slots) },
	} {
		left, err := turn()
		if err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, left)
	}
	// A limit that was reported during the wait counts too.
	if err := p.allowed(call, true); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// allowed returns nil if a call may be made now, and records a write that is made.
func (p *Pace) allowed(call Call, made bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if wait := p.blocked.Sub(now); wait > 0 {
		return fault.Throttledf(fault.ReasonRateLimited, wait, "waiting for the Git service's rate limit to be lifted")
	}
	if !call.Writes() {
		return nil
	}
	if wait := p.writeDelay(now); wait > 0 {
		return fault.Throttledf(ReasonPaced, wait, "waiting between writes, because the Git service has limited their rate")
	}
	if made {
		p.wrote = now
	}
	return nil
}

// writeDelay returns how long the next write must wait after a secondary limit.
func (p *Pace) writeDelay(now time.Time) time.Duration {
	if p.limited.IsZero() {
		return 0
	}
	steps := int(now.Sub(p.limited) / paceFor)
	if steps >= paceSteps {
		p.limited = time.Time{}
		return 0
	}
	return max(0, p.wrote.Add(writePace>>steps).Sub(now))
}

// Learn records the outcome of a call: the header of an answer, or an error.
func (p *Pace) Learn(header http.Header, err error) {
	if err == nil {
		p.learnHeader(header)
		return
	}
	f := fault.Of(err)
	ours := f.Reason == fault.ReasonBusy // the service was not called
	if f.Class != fault.Throttled || f.RetryAfter <= 0 || ours {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.block(f.RetryAfter)
	var answer *StatusError
	if errors.As(err, &answer) && limitHeader(answer.Header, "Remaining") != "0" {
		p.limited = p.now()
	}
}

// learnHeader records a header that says that the call was the last one allowed in this window.
func (p *Pace) learnHeader(h http.Header) {
	resource := h.Get("X-RateLimit-Resource")
	if limitHeader(h, "Remaining") != "0" || (resource != "" && resource != "core") {
		return
	}
	reset, err := strconv.ParseInt(limitHeader(h, "Reset"), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, err := http.ParseTime(h.Get("Date")) // so that the difference between the clocks does not matter
	if err != nil {
		now = p.now()
	}
	p.block(time.Unix(reset, 0).Sub(now))
}

// limitHeader reads GitHub's name of a limit's header, else GitLab's.
func limitHeader(h http.Header, name string) string {
	return cmp.Or(h.Get("X-RateLimit-"+name), h.Get("RateLimit-"+name))
}

func (p *Pace) block(wait time.Duration) {
	until := p.now().Add(min(wait, maxBlock))
	if until.After(p.blocked) {
		p.blocked = until
	}
}
