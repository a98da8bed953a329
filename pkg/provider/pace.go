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
	// patience is how long a call waits for its turn before it gives its worker back. Turns are as
	// long as calls: well under a second, but 30 s at a service that hangs.
	patience = 5 * time.Second
	// turnWait is when one that gave up comes back.
	turnWait = 2 * time.Second
	// maxBlock bounds what a service may make us wait: GitHub's windows are one hour.
	maxBlock = 65 * time.Minute
	// writePace is 60 writes a minute, kept for paceFor after a secondary limit and halved for each
	// paceFor since.
	writePace = time.Second
	paceFor   = 5 * time.Minute
	paceSteps = 4
)

// ReasonPaced is the reason of a Throttled fault: a call was not made, because a limit has no room
// for it yet.
const ReasonPaced = "Paced"

// Pace is what one process remembers of a service's limits for one credential: until when nothing
// may be called (G1), how fast to write (G2), what is left of published budgets, and whose turn it
// is. It is advisory: losing it costs time, never truth. Safe for concurrent use.
type Pace struct {
	now      func() time.Time
	patience time.Duration
	slots    chan struct{} // nil if any number of calls may be made at once
	write    chan struct{} // nil if any number of writes may
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

// Enter waits briefly for the call's turn. The caller calls leave when the call has ended. A
// Throttled fault says when to come back.
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
		func() (func(), error) { return p.takeAlone(ctx, call.Alone) },
		func() (func(), error) { return p.take(ctx, p.writeGate(call)) },
		func() (func(), error) { return p.take(ctx, p.slots) },
	} {
		left, err := turn()
		if err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, left)
	}
	// What was learnt while waiting counts as well.
	if err := p.allowed(call, true); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// allowed reports whether a call may be made now, and notes a write that is made.
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
	if wait := p.slowed(now); wait > 0 {
		return fault.Throttledf(ReasonPaced, wait, "writing slowly after the Git service's secondary rate limit")
	}
	if made {
		p.wrote = now
	}
	return nil
}

// slowed is how long the next write waits because there was a secondary limit.
func (p *Pace) slowed(now time.Time) time.Duration {
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

// Learn takes note of a call's outcome: the header of an answer, or the error instead of one.
func (p *Pace) Learn(header http.Header, err error) {
	if err == nil {
		p.learnHeader(header)
		return
	}
	f := fault.Of(err)
	if f.Class != fault.Throttled || f.RetryAfter <= 0 ||
		f.Reason == fault.ReasonBusy { // of our own making: the service was called
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

// learnHeader notes that the last call allowed in this window was the one just made.
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
	now, err := http.ParseTime(h.Get("Date")) // else the difference of the clocks would count
	if err != nil {
		now = p.now()
	}
	p.block(time.Unix(reset, 0).Sub(now))
}

// limitHeader reads GitHub's spelling of a limit's header, else GitLab's.
func limitHeader(h http.Header, name string) string {
	return cmp.Or(h.Get("X-RateLimit-"+name), h.Get("RateLimit-"+name))
}

func (p *Pace) block(wait time.Duration) {
	until := p.now().Add(min(wait, maxBlock))
	if until.After(p.blocked) {
		p.blocked = until
	}
}
