// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// maxConcurrent is G2's bound on the requests of one credential that are in flight at once.
	maxConcurrent = 10
	// patience is how long a call waits for its turn before it gives its worker back. Turns are as long as calls: well
	// under a second, but 30 s at a service that hangs.
	patience = 5 * time.Second
	// turnWait is when one that gave up comes back.
	turnWait = 2 * time.Second
	// maxBlock bounds what a service may make us wait: GitHub's windows are one hour.
	maxBlock = 65 * time.Minute
	// writePace is 60 writes a minute, kept for paceFor after a secondary limit and halved for each paceFor since.
	writePace = time.Second
	paceFor   = 5 * time.Minute
	paceSteps = 4
)

// Pace is what one process remembers of a service's limits for one credential: until when nothing may be called
// (G1), how fast to write (G2), and whose turn it is. It is advisory: losing it costs time, never truth. Safe for
// concurrent use.
type Pace struct {
	now      func() time.Time
	patience time.Duration
	slots    chan struct{}
	write    chan struct{}

	mu      sync.Mutex
	blocked time.Time
	limited time.Time // the last secondary limit
	wrote   time.Time
}

// NewPace returns a Pace that knows of no limit.
func NewPace(now func() time.Time) *Pace {
	return &Pace{now: now, patience: patience, slots: make(chan struct{}, maxConcurrent), write: make(chan struct{}, 1)}
}

// Enter waits briefly for the call's turn; writes take turns one by one. The caller calls leave when the call has
// ended. A Throttled fault says when to come back.
func (p *Pace) Enter(ctx context.Context, write bool) (leave func(), err error) {
	if err := p.allowed(write); err != nil {
		return nil, err
	}
	if err := p.turn(ctx, p.slots); err != nil {
		return nil, err
	}
	if !write {
		return func() { <-p.slots }, nil
	}
	if err := p.turn(ctx, p.write); err != nil {
		<-p.slots
		return nil, err
	}
	leave = func() { <-p.write; <-p.slots }
	// What was learnt while waiting counts as well.
	if err := p.allowed(write); err != nil {
		leave()
		return nil, err
	}
	p.mu.Lock()
	p.wrote = p.now()
	p.mu.Unlock()
	return leave, nil
}

func (p *Pace) turn(ctx context.Context, gate chan struct{}) error {
	select {
	case gate <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	case <-timer.C:
		return fault.Throttledf(fault.ReasonBusy, turnWait, "waiting for other calls of the same installation")
	}
}

func (p *Pace) allowed(write bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if wait := p.blocked.Sub(now); wait > 0 {
		return fault.Throttledf(fault.ReasonRateLimited, wait, "waiting for the Git service's rate limit to be lifted")
	}
	if !write || p.limited.IsZero() {
		return nil
	}
	steps := int(now.Sub(p.limited) / paceFor)
	if steps >= paceSteps {
		p.limited = time.Time{}
		return nil
	}
	if wait := p.wrote.Add(writePace >> steps).Sub(now); wait > 0 {
		return fault.Throttledf("Paced", wait, "writing slowly after the Git service's secondary rate limit")
	}
	return nil
}

// Learn takes note of a call's outcome: the header of an answer, or the error instead of one.
func (p *Pace) Learn(header http.Header, err error) {
	if err == nil {
		p.learnHeader(header)
		return
	}
	f := fault.Of(err)
	if f.Class != fault.Throttled || f.RetryAfter <= 0 {
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
	p.block(time.Unix(reset, 0).Sub(p.now()))
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
