// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// giveUp is when GitHub does.
	giveUp = 10 * time.Second
	// keptFailures is how many failures a report tells in words.
	keptFailures = 20
)

// client sends deliveries from outside: half of them on their own connections, as Git services do,
// half through kept connections, as the proxies in front of a cluster do. It never retries.
type client struct {
	url    string
	fresh  http.Client
	kept   http.Client
	begin  time.Time
	failed chan struct{} // closed with the first failure that is not Slow

	first sync.Once

	mu     sync.Mutex
	report Report
	took   []time.Duration
	// accepted are the GUIDs that were answered 202.
	accepted []string
}

func newClient(url string, idle time.Duration) *client {
	return &client{
		url: url, begin: time.Now(), failed: make(chan struct{}),
		fresh: http.Client{Timeout: giveUp, Transport: &http.Transport{DisableKeepAlives: true}},
		kept:  http.Client{Timeout: giveUp, Transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: idle}},
	}
}

// send sends what next gives, rate times a second, until ctx ends, and waits for the last answer.
func (c *client) send(ctx context.Context, rate int, next func(n int) forge.Delivery) {
	c.begin = time.Now()
	installation.OpenLoop(ctx, time.Second/time.Duration(rate), math.MaxInt, func(n int, _ time.Time) {
		delivery, by := next(n), &c.fresh
		if n/2%2 == 1 { // next alternates kinds by n%2
			by = &c.kept
		}
		start := time.Now()
		status, err := deliver(by, c.url, delivery)
		c.count(delivery, start, status, err)
	})
}

// deliver posts once; a POST that a connection's end took with it is not sent again.
func deliver(by *http.Client, url string, d forge.Delivery) (status int, err error) {
	request, err := d.Request(context.Background(), url)
	if err != nil {
		return 0, err
	}
	request.GetBody = nil // net/http would try again by itself
	response, err := by.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// cutOff reports whether the other end has closed the connection, with a reset if it had not read
// all of the request.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (c *client) count(d forge.Delivery, start time.Time, status int, err error) {
	took := time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Sent++
	c.took = append(c.took, took)
	switch {
	case err != nil:
		c.report.ConnectionErrors++
		if cutOff(err) && took > installation.ReceiverHeaderWait {
			c.report.Slow++
		}
	case status/100 != 2:
		c.report.Refused++
		if status == http.StatusServiceUnavailable && took > installation.ReceiverAPIWait {
			c.report.Slow++
		}
		err = fmt.Errorf("answered %d", status)
	case status == http.StatusAccepted:
		c.accepted = append(c.accepted, d.GUID)
		return
	default:
		return
	}
	if c.report.Failed() > c.report.Slow {
		c.first.Do(func() { close(c.failed) })
	}
	if len(c.report.Failures) < keptFailures {
		c.report.Failures = append(c.report.Failures, fmt.Sprintf("%v: %s %s after %v: %v",
			start.Sub(c.begin).Round(time.Millisecond), d.Event, d.GUID, took.Round(time.Millisecond), err))
	}
}

// counted is the report so far.
func (c *client) counted() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	report := c.report
	report.Median, report.P99 = installation.Percentile(c.took, 50), installation.Percentile(c.took, 99)
	report.Longest = installation.Percentile(c.took, 100)
	report.Accepted = len(c.accepted)
	return report
}
