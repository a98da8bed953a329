// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// Options of Run; all but Key are required.
type Options struct {
	// Cluster has the CustomResourceDefinitions of config/ already.
	Cluster  *cluster.Cluster
	Programs installation.Programs
	Settings Settings
	// Key is an App's private key, made when empty.
	Key string
}

// Report is what the client saw.
type Report struct {
	Sent, Restarts int
	// ConnectionErrors got no whole answer, Refused another than 2xx.
	ConnectionErrors, Refused int
	// Slow of both are the machine's fault: 503 because the API server took longer than a receiver
	// waits for it, and connections that were closed because what the client had sent was not
	// carried to the receiver in time.
	Slow int
	// Accepted were answered 202; Lost of them have not exactly one GitEvent.
	Accepted, Lost       int
	Median, P99, Longest time.Duration
	Failures             []string // the first ones, in words
}

// Failed is how many deliveries were not answered 2xx.
func (r Report) Failed() int { return r.ConnectionErrors + r.Refused }

func (r Report) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	line := fmt.Sprintf("%d deliveries, %d restarts, %d failed (%d connection errors, %d not 2xx, %d of them as the machine was slow), %d answered 202 of which %d lost; answers after %v median, %v p99, %v longest",
		r.Sent, r.Restarts, r.Failed(), r.ConnectionErrors, r.Refused, r.Slow, r.Accepted, r.Lost, ms(r.Median), ms(r.P99),
		ms(r.Longest))
	return strings.Join(append([]string{line}, r.Failures...), "\n  ")
}

// Run installs Plumbline in a namespace of its own and soaks it. No controller runs: receivers need
// none. An error means that the soak itself went wrong; failed deliveries are in the report.
func Run(ctx context.Context, o Options) (report Report, err error) {
	s, err := open(ctx, o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.installation.Close(s.tenant), s.forge.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	balancer, err := newBalancer(ctx, o.Settings.Latency, o.Settings.Unlisting)
	if err != nil {
		return report, fmt.Errorf("starting the balancer: %w", err)
	}
	client := newClient(balancer.url(), o.Settings.Idle)
	d := &deployment{settings: o.Settings, installation: s.installation, balancer: balancer}
	restarts := s.soak(ctx, d, client)
	report = client.counted()
	report.Restarts = restarts
	lost, err := s.lost(ctx, client.accepted)
	report.Lost = lost
	return report, errors.Join(err, d.end())
}

// soak sends from when all replicas are ready until the time is over, with the rollout going on
// meanwhile.
func (s *stage) soak(ctx context.Context, d *deployment, c *client) (restarts int) {
	if !d.scaleUp(ctx) {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, d.settings.Duration)
	defer cancel()
	var beside sync.WaitGroup
	beside.Go(func() { restarts = d.roll(ctx) })
	if d.settings.StopAtFailure {
		beside.Go(func() {
			select {
			case <-c.failed:
				cancel()
			case <-ctx.Done():
			}
		})
	}
	c.send(ctx, d.settings.Rate, s.delivery)
	cancel()
	beside.Wait()
	return restarts
}
