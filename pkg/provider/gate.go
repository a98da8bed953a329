// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// gate lets one call at a time through.
type gate struct {
	turn  chan struct{}
	users int
}

func (p *Pace) writeGate(call Call) chan struct{} {
	if call.Writes() {
		return p.write
	}
	return nil
}

// enterAlone enters the gate of a name; without a name there is nothing to enter.
func (p *Pace) enterAlone(ctx context.Context, name string) (leave func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	p.mu.Lock()
	g := p.alone[name]
	if g == nil {
		g = &gate{turn: make(chan struct{}, 1)}
		p.alone[name] = g
	}
	g.users++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(p.alone, name)
		}
	}
	free, err := p.enter(ctx, g.turn)
	if err != nil {
		forget()
		return nil, err
	}
	return func() { free(); forget() }, nil
}

// enter waits to enter a gate; a nil gate is always open.
func (p *Pace) enter(ctx context.Context, gate chan struct{}) (leave func(), err error) {
	if gate == nil {
		return func() {}, nil
	}
	leave = func() { <-gate }
	select {
	case gate <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case gate <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	case <-timer.C:
		return nil, fault.Throttledf(fault.ReasonBusy, retryAfter, "waiting for other calls of the same installation")
	}
}
