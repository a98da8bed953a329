// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// The kinds of deliveries.
const (
	pushing     = "push"
	forcing     = "forced push"
	pullOpens   = "pull request opens"
	pullMoves   = "push to a pull request"
	pullCloses  = "pull request closes"
	again       = "same delivery again"
	twins       = "same delivery twice at once"
	swapped     = "two pushes, delivered in the other order"
	opened      = "opened"
	synchronize = "synchronize"
	closed      = "closed"
)

// author does everything at the Git services.
const author = "octocat"

// delivering is a kind of deliveries and its weight.
type delivering struct {
	kind   string
	weight int
}

func (d delivering) heavy() int { return d.weight }

func deliveries() []delivering {
	return []delivering{
		{pushing, 40}, {forcing, 8}, {pullOpens, 10}, {pullMoves, 10}, {pullCloses, 5}, {again, 10}, {twins, 8}, {swapped, 9},
	}
}

// branches get pushes beside main. A pull request has one of its own.
const branches = 5

// history is what was delivered of one host. One goroutine after the other changes it: the acts begin in their order.
type history struct {
	first delivery // of all
	mu    sync.Mutex
	sent  []delivery
	pulls []pull // that are open
	count int
	// started are the deliveries of commits that have pipelines for them: they must not be ignored.
	started map[string]bool
}

type pull struct {
	number int
	branch string
}

// deliver makes what an act delivers and returns what sends it. What is made is so in the order of the acts, what is sent is sent
// beside each other.
func (h *history) deliver(to host, act Act, r *rand.Rand) (sends []delivery, atOnce bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	branch := "main"
	if r.IntN(2) == 0 {
		branch = fmt.Sprint("work-", r.IntN(branches))
	}
	switch act.Kind {
	case pullOpens:
		h.count++
		branch := fmt.Sprint("pull-", h.count)
		number := to.open(branch, h.change(r))
		h.pulls = append(h.pulls, pull{number, branch})
		sends = []delivery{to.pull(number, opened)}
	case pullMoves, pullCloses:
		if len(h.pulls) == 0 {
			return nil, false
		}
		n := r.IntN(len(h.pulls))
		p, action := h.pulls[n], synchronize
		if act.Kind == pullCloses {
			h.pulls, action = append(h.pulls[:n:n], h.pulls[n+1:]...), closed
		} else {
			to.push(p.branch, h.change(r)) // the push itself has no pipeline and is not told of
		}
		sends = []delivery{to.pull(p.number, action)}
	case again:
		if len(h.sent) == 0 {
			return nil, false
		}
		return []delivery{h.sent[r.IntN(len(h.sent))]}, false
	case twins:
		d := h.push(to, branch, h.change(r))
		sends = []delivery{d, d}
	case swapped:
		first := h.push(to, branch, h.change(r))
		sends = []delivery{h.push(to, branch, h.change(r)), first}
	case forcing:
		change := h.change(r)
		change.Parent = to.root()
		sends = []delivery{h.push(to, branch, change)}
	default:
		sends = []delivery{h.push(to, branch, h.change(r))}
	}
	h.sent = append(h.sent, sends[0])
	return sends, act.Kind == twins
}

func (h *history) push(to host, branch string, change forge.Change) delivery {
	d := to.push(branch, change)
	h.started[d.ID()] = true
	return d
}

func (h *history) change(r *rand.Rand) forge.Change {
	h.count++
	const longestTask = 4000 // milliseconds
	return files(fmt.Sprint("change ", h.count), 1+r.IntN(maxRuns), r.IntN(longestTask))
}

// deliver delivers what an act says.
func (s *stage) deliver(ctx context.Context, act Act) {
	r := act.rand(s.options.Seed)
	n := r.IntN(len(s.hosts))
	to, h := s.hosts[n], s.histories[n]
	sends, atOnce := h.deliver(to, act, r)
	if sends == nil {
		return
	}
	s.tally.add(to.kind()+": "+act.Kind, 1)
	s.sending.Go(func() {
		var all sync.WaitGroup
		for _, d := range sends {
			send := func() { s.tally.add(answered(to.send(ctx, d)), 1) }
			if atOnce {
				all.Go(send)
				continue
			}
			send()
		}
		all.Wait()
	})
}

func answered(code int) string {
	if code == 0 {
		return "deliveries without an answer"
	}
	return fmt.Sprint("deliveries answered ", code)
}
