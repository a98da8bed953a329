// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// The kinds of deliveries.
const (
	pushing    = "push"
	forcing    = "forced push"
	pullOpens  = "pull request opens"
	pullMoves  = "push to a pull request"
	pairing    = "push to a pull request, told as a push too"
	pullCloses = "pull request closes"
	again      = "same delivery again"
	twins      = "same delivery twice at once"
	swapped    = "two pushes, delivered in the other order"
	commenting = "comment that starts pipelines"
	commanding = "command that starts pipelines"
	deciding   = "command that depends on what runs"
	chatting   = "comment that asks for nothing"
	intruding  = "comment of an untrusted user"
	late       = "comment on a closed pull request"
	asking     = "pull request of an untrusted user opens"
	pressing   = "push to a pull request of an untrusted user"
	approving  = "approval"
)

// author does everything at the Git services. outsider has no rights, writes comments, and opens
// pull requests from a fork.
const (
	author   = "octocat"
	outsider = "mallory"
)

// delivering is a kind of deliveries and its weight.
type delivering struct {
	kind   string
	weight int
	// happen does something at the Git service and returns the deliveries that tell of it, in the
	// order in which they are sent: none where there is nothing to do it to.
	happen func(r *repository, by *rand.Rand) []delivery
}

func (d delivering) heavy() int { return d.weight }

func deliveries() []delivering {
	return []delivering{
		{pushing, 36, (*repository).pushes},
		{forcing, 8, (*repository).forces},
		{pullOpens, 10, (*repository).opens},
		{pullMoves, 10, (*repository).moves},
		{pairing, 8, (*repository).movesTwice},
		{pullCloses, 5, (*repository).closes},
		{again, 10, (*repository).deliversAgain},
		{twins, 8, (*repository).pushesDeliveredTwice},
		{swapped, 9, (*repository).pushesTwice},
		{commenting, 8, (*repository).asks},
		{commanding, 6, (*repository).commands},
		{deciding, 5, (*repository).decides},
		{chatting, 2, (*repository).comments},
		{intruding, 3, (*repository).commandsWithoutRight},
		{late, 3, (*repository).asksLate},
		{asking, 3, (*repository).opensOutside},
		{pressing, 3, (*repository).movesOutside},
		{approving, 6, (*repository).approves},
	}
}

// outcome is the required effect of a delivery.
type outcome int

const (
	// either may be: it starts something, or it does not.
	either outcome = iota
	// starts: there are pipelines for it, so that it must not be ignored.
	starts
	// nothing may be left of it but a record that it was ignored: no run and no check.
	nothing
	// noEffect: as nothing, and it cancels no runs either.
	noEffect
)

// repository is a project of a Git service and its Repository.
type repository struct {
	project
	// path is the project's, service is onGitHub or onGitLab, tenant whose it is.
	path, service, tenant string
	// namespace is the Repository's, and its PipelineRuns'.
	namespace string
	limit     int      // its first concurrency_limit, 0 for none
	first     delivery // of all

	mu       sync.Mutex
	sent     []delivery
	outcomes map[string]outcome // by delivery key, of every delivery
	counts   map[string]int     // of pushes: how many PipelineRuns their commits define
	count    int
	// pulling are the pull requests that are open, pulled those that were closed.
	pulling, pulled []*pull
	// outsiders are the outsider's pull requests; approved has all their heads, and whether the
	// author has approved them.
	outsiders []*outside
	approved  map[string]bool
	// pairs has the delivery that tells of a push to a pull request as a push, by the one that
	// tells of it as what moved the pull request.
	pairs map[string]string
	// heads are all commits that a branch or a pull request ever was at.
	heads invariants.Heads
}

// branches other than main get pushes. A pull request has its own branch.
const branches = 5

// deliver performs an act, and returns its deliveries. It is called in the order of the acts; the
// deliveries of several acts are sent at the same time.
func (r *repository) deliver(kind string, by *rand.Rand) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := deliveries()
	n := slices.IndexFunc(all, func(d delivering) bool { return d.kind == kind })
	return all[n].happen(r, by)
}

// expect records the required outcome of a delivery.
func (r *repository) expect(d delivery, w outcome) delivery {
	r.outcomes[d.ID()] = w
	r.sent = append(r.sent, d)
	return d
}

// pushed pushes, and records how many PipelineRuns the push starts.
func (r *repository) pushed(branch string, change forge.Change) delivery {
	d := r.expect(r.push(branch, change), starts)
	r.got(0, "refs/heads/"+branch, r.tip(branch))
	r.counts[d.ID()] = defined(change)
	return d
}

// got records the head of a pull request, or of a branch if the number is 0; "" is a closed pull
// request.
func (r *repository) got(number int, ref, sha string) {
	line := invariants.Line(r.namespace, r.name(), int64(number), ref)
	r.heads[line] = append(r.heads[line], invariants.Head{SHA: sha, At: time.Now()})
}

// countOf returns how many PipelineRuns a push starts, 0 for another delivery.
func (r *repository) countOf(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[key]
}

// outcomeOf returns the required outcome of a delivery, and whether the delivery is of this
// repository.
func (r *repository) outcomeOf(key string) (w outcome, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ours = r.outcomes[key]
	return w, ours
}

func (r *repository) change(by *rand.Rand) forge.Change {
	r.count++
	const longestTask = 4000 // milliseconds
	return files(fmt.Sprint("change ", r.count), 1+by.IntN(maxRuns), by.IntN(longestTask))
}

// branch returns main or another branch.
func (r *repository) branch(by *rand.Rand) string {
	if by.IntN(2) == 0 {
		return fmt.Sprint("work-", by.IntN(branches))
	}
	return "main"
}

func (r *repository) pushes(by *rand.Rand) []delivery {
	return []delivery{r.pushed(r.branch(by), r.change(by))}
}

func (r *repository) forces(by *rand.Rand) []delivery {
	branch, change := r.branch(by), r.change(by)
	change.Parent = r.root()
	return []delivery{r.pushed(branch, change)}
}

// pushesDeliveredTwice pushes once and delivers the push twice.
func (r *repository) pushesDeliveredTwice(by *rand.Rand) []delivery {
	d := r.pushes(by)[0]
	return []delivery{d, d}
}

// pushesTwice pushes to a branch twice and delivers the second push first.
func (r *repository) pushesTwice(by *rand.Rand) []delivery {
	branch := r.branch(by)
	first := r.pushed(branch, r.change(by))
	return []delivery{r.pushed(branch, r.change(by)), first}
}

// deliversAgain sends any earlier delivery again.
func (r *repository) deliversAgain(by *rand.Rand) []delivery {
	if len(r.sent) == 0 {
		return nil
	}
	return []delivery{pick(by, r.sent)}
}

// deliver performs the delivery of an act.
func (s *stage) deliver(ctx context.Context, act Act) {
	by := act.rand(s.options.Seed)
	to := pick(by, s.repositories)
	sends := to.deliver(act.Kind, by)
	if len(sends) == 0 {
		return
	}
	s.tally.add(to.service+": "+act.Kind, 1)
	s.tally.add("of tenant "+to.tenant, 1)
	s.sending.Go(func() {
		var all sync.WaitGroup
		for _, d := range sends {
			send := func() { s.send(ctx, to, act.Kind, d) }
			if act.Kind == twins {
				all.Go(send)
				continue
			}
			send()
		}
		all.Wait()
	})
}

// send delivers, and counts the answer. A GitLab does not redeliver what was refused. For two
// deliveries of one push it does so here: otherwise the push would wait for the other one longer
// than a campaign settles.
func (s *stage) send(ctx context.Context, to *repository, kind string, d delivery) {
	const most = 60
	for range most {
		code := to.send(ctx, s.front.server.URL, d)
		s.tally.add(answered(code), 1)
		if code/100 == 2 || kind != pairing || to.redelivers() {
			return
		}
		within(ctx, time.Second)
	}
}

func answered(code int) string {
	if code == 0 {
		return "deliveries without an answer"
	}
	return fmt.Sprint("deliveries answered ", code)
}
