// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// pushEvery is the tenant's pace, whatever the answers take.
	pushEvery = 500 * time.Millisecond
	// reported is how long a push is waited for. It is far more than it takes, so that what is late
	// is told from what is lost.
	reported = 3 * time.Minute
	// giveUp is when GitHub gives a delivery up.
	giveUp = 10 * time.Second
)

// Pushes are the tenant's results: how many were sent, answered 202 and shown as successful; how
// many deliveries were repeated because the API server was slow; how long after the push its first
// check was accepted at the forge, and its result.
type Pushes struct {
	Sent, Accepted, Successful, Again int
	First, Result                     Times
	Failures                          []string // the first ones, in words
}

// Times are percentiles.
type Times struct{ P50, P99 time.Duration }

// pushSeries are the pushes of some time.
type pushSeries struct {
	mu     sync.Mutex
	pushes []*push
	flying sync.WaitGroup
}

// push is one commit, its delivery, and what became of it; what did not happen is 0.
type push struct {
	sha           string
	answer, again int
	err           error
	first, result time.Duration
}

// warm lets a push succeed: it fills caches and opens connections.
func (s *stage) warm(ctx context.Context) error {
	s.forge.Commit(good, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("push", "")}})
	for _, repo := range []string{good, shown, evil} {
		if err := s.installation.Claimed(ctx, s.forge.URL()+"/"+repo); err != nil {
			return err
		}
	}
	if p := s.push(ctx); p.result == 0 {
		return fmt.Errorf("it was answered %d, %w", p.answer, p.err)
	}
	return nil
}

// pushes begins to send for some time, and does not wait for what becomes of it.
func (s *stage) pushes(ctx context.Context, during time.Duration) *pushSeries {
	all := &pushSeries{}
	installation.OpenLoop(ctx, pushEvery, int((during+pushEvery-1)/pushEvery), func(int, time.Time) {
		all.flying.Go(func() {
			p := s.push(ctx)
			all.mu.Lock()
			defer all.mu.Unlock()
			all.pushes = append(all.pushes, p)
		})
	})
	return all
}

// push makes one push and waits for its end.
func (s *stage) push(ctx context.Context) *push {
	ctx, cancel := context.WithTimeout(ctx, reported)
	defer cancel()
	p := &push{sha: s.forge.Commit(good, "main", forge.Change{Message: "a change"})}
	begin := time.Now()
	if s.insist(ctx, p); p.err != nil || p.answer != http.StatusAccepted {
		return p
	}
	wait := func(ok func(forge.CheckRun) bool) (took time.Duration, err error) {
		err = s.forge.WaitFor(ctx, func(state *forge.State) bool {
			return slices.ContainsFunc(state.ChecksFor(good, p.sha), ok)
		})
		return time.Since(begin), err
	}
	took, err := wait(func(forge.CheckRun) bool { return true })
	if p.err = err; err != nil {
		return p
	}
	p.first = took
	took, err = wait(func(check forge.CheckRun) bool { return check.Conclusion == "success" })
	if p.err = err; err == nil {
		p.result = took
	}
	return p
}

// insist delivers a push again while the API server is slow, or with Again until it is accepted.
func (s *stage) insist(ctx context.Context, p *push) {
	d := s.forge.PushDelivery(forge.PushEvent{Repo: good, Ref: "refs/heads/main", After: p.sha})
	for {
		begin := time.Now()
		p.answer, p.err = post(ctx, s.receiver.URL, d)
		refused := p.err != nil || p.answer == http.StatusServiceUnavailable
		if !refused || ctx.Err() != nil || !s.again && (p.err != nil || time.Since(begin) < installation.ReceiverAPIWait) {
			return
		}
		p.again++
		installation.Until(ctx, begin.Add(pushEvery)) // no storm of our own
	}
}

// request is a delivery of either service.
type request interface {
	Request(ctx context.Context, url string) (*http.Request, error)
}

// post delivers once, over a connection of its own as Git services do.
func post(ctx context.Context, url string, d request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	r, err := d.Request(ctx, url)
	if err != nil {
		return 0, err
	}
	r.Close, r.GetBody = true, nil // net/http would try again by itself
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// result waits for the end of all pushes.
func (a *pushSeries) result() Pushes {
	a.flying.Wait()
	const told = 5
	out := Pushes{Sent: len(a.pushes)}
	var first, result []time.Duration
	for _, p := range a.pushes {
		out.Again += p.again
		if p.answer == http.StatusAccepted {
			out.Accepted++
		}
		if p.first > 0 {
			first = append(first, p.first)
		}
		if p.result > 0 {
			out.Successful++
			result = append(result, p.result)
			continue
		}
		if len(out.Failures) < told {
			out.Failures = append(out.Failures,
				fmt.Sprintf("commit %.8s was answered %d, its first check came after %v: %v", p.sha, p.answer, p.first, p.err))
		}
	}
	out.First, out.Result = times(first), times(result)
	return out
}

func times(all []time.Duration) Times {
	return Times{P50: installation.Percentile(all, 50), P99: installation.Percentile(all, 99)}
}
