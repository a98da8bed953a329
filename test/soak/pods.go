// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// readyLimit is for a new receiver on a busy machine.
	readyLimit = 90 * time.Second
	// runningPoll is how often it is asked whether a process exists.
	runningPoll = 2 * time.Millisecond
)

// deployment is kubelet, the endpoints controller and a Deployment's rollout for the receivers of a
// soak.
type deployment struct {
	settings     Settings
	installation *installation.Installation
	balancer     *balancer

	mu     sync.Mutex
	spare  []*installation.Process // ended, may be started again
	faults []error

	ready    []*pod // oldest first; the rollout's own
	removals sync.WaitGroup
}

// pod is one life of a process.
type pod struct {
	process *installation.Process
	// ready is closed when a probe succeeds for the first time.
	ready chan struct{}
	// serving is closed when the process says itself that it is ready, or that failed.
	serving chan struct{}
	// stop ends the probes.
	stop context.CancelFunc
}

func (p *pod) endpoint() string { return strings.TrimPrefix(p.process.URL, "http://") }

// scaleUp starts the replicas and waits until they serve, also without readiness probes; false
// when that failed.
func (d *deployment) scaleUp(ctx context.Context) bool {
	for range d.settings.Replicas {
		if !d.add(ctx) {
			return false
		}
	}
	for _, p := range d.ready {
		select {
		case <-p.serving:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// roll replaces the oldest receiver every RestartEvery until ctx ends or that fails; it returns
// how often.
func (d *deployment) roll(ctx context.Context) (restarts int) {
	tick := time.NewTicker(d.settings.RestartEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return restarts
		case <-tick.C:
		}
		if !d.add(ctx) {
			return restarts
		}
		oldest := d.ready[0]
		d.ready = d.ready[1:]
		d.removals.Go(func() { d.fault(d.remove(oldest)) })
		restarts++
	}
}

// add starts one more receiver and waits until it counts as ready.
func (d *deployment) add(ctx context.Context) bool {
	p, err := d.start(ctx)
	if ctx.Err() != nil {
		return false // the soak is over
	}
	if err != nil {
		d.fault(err)
		return false
	}
	select {
	case <-p.ready:
		d.ready = append(d.ready, p)
		return true
	case <-ctx.Done():
	case <-time.After(readyLimit):
		d.fault(fmt.Errorf("%s is not ready after %v", p.process.Name(), readyLimit))
	}
	p.stop()
	return false
}

func (d *deployment) start(ctx context.Context) (*pod, error) {
	process, err := d.process(ctx)
	if err != nil {
		return nil, err
	}
	probing, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &pod{process: process, ready: make(chan struct{}), serving: make(chan struct{}), stop: stop}
	go func() {
		defer close(p.serving)
		if err := process.Start(probing); err != nil && probing.Err() == nil {
			d.fault(err)
		}
	}()
	if err := running(ctx, process); err != nil {
		stop()
		return nil, err
	}
	if d.settings.IgnoreReadiness {
		d.balancer.list(p.endpoint())
		close(p.ready)
		return p, nil
	}
	go d.probe(probing, p)
	return p, nil
}

// process is one that has ended, or a new one behind a proxy that makes it wait for its caches.
func (d *deployment) process(ctx context.Context) (*installation.Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.spare); n > 0 {
		process := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return process, nil
	}
	process, err := d.installation.Receiver(ctx, true, "-drain-wait="+d.settings.Pod.DrainWait.String())
	if err != nil {
		return nil, err
	}
	process.Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Resource == "configmaps" }, Do: cluster.Delay(d.settings.CacheFill),
	})
	return process, nil
}

func running(ctx context.Context, process *installation.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return cluster.Poll(ctx, runningPoll, func() error {
		if !process.Running() {
			return fmt.Errorf("%s has not started", process.Name())
		}
		return nil
	})
}

// probe asks /ready as kubelet does, and lists and unlists the endpoint by it.
func (d *deployment) probe(ctx context.Context, p *pod) {
	client := &http.Client{Timeout: d.settings.Pod.ProbeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(d.settings.Pod.ProbeEvery)
	defer tick.Stop()
	listed, was, failures := false, false, 0
	for {
		failures++
		if succeeds(ctx, client, p.process.URL+"/ready") {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return
		case failures == 0 && !listed:
			d.balancer.list(p.endpoint())
			listed = true
			if !was {
				close(p.ready)
				was = true
			}
		case failures >= d.settings.Pod.ProbeFailures && listed:
			d.balancer.unlist(p.endpoint())
			listed = false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func succeeds(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode < http.StatusBadRequest
}

// remove deletes a pod: its endpoint begins to go, preStop passes, SIGTERM, and SIGKILL when the
// grace period is over.
func (d *deployment) remove(p *pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.settings.Pod.Grace)
	defer cancel()
	p.stop()
	d.balancer.unlist(p.endpoint())
	<-time.After(d.settings.Pod.PreStop)
	if err := p.process.Terminate(); err != nil {
		return err
	}
	if err := p.process.Wait(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s did not end within its grace period: %w", p.process.Name(), err), p.process.Kill())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spare = append(d.spare, p.process)
	return nil
}

func (d *deployment) fault(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, err)
}

// end waits for the removals and returns everything that went wrong.
func (d *deployment) end() error {
	d.removals.Wait()
	for _, p := range d.ready {
		p.stop()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.faults...)
}
