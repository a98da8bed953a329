// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

const (
	// patience is how long a run must have waited until no other may get a slot before it: a
	// controller that was cut off for 9 s connects its watches again half a minute later.
	patience = 45 * time.Second
	// trap is how long a call is waited for at which a controller is killed.
	trap = 10 * time.Second
	// limitEvery is the time between two changes of a limit where little else is disturbed.
	limitEvery = 8 * time.Second
)

// name returns the name of the Repository.
func (r *repository) name() string { return strings.ToLower(r.service) }

// limitable is the target of a change of a Repository's limit.
func limitable(tenant, service string) string { return "limit of " + tenant + " on " + service }

// limitables are all such targets, in the order of the repositories.
func limitables() (all []string) {
	for _, tenant := range tenants() {
		for _, on := range []string{onGitHub, onGitLab} {
			all = append(all, limitable(tenant, on))
		}
	}
	return all
}

// limits are used in turn; 0 is none, which Limits leaves out.
func limits() []int { return []int{1, 3, 10, 0} }

// limitOf returns the first limit of a repository: in a campaign one tenant has limits.
func (s *stage) limitOf(n int) int {
	first := s.options.Limits
	if first == nil {
		first = []int{3, 3, 0, 0}
	}
	return first[n%len(first)]
}

// limit changes the limit of a Repository.
func (s *stage) limit(ctx context.Context, act Act) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ready)
	defer cancel()
	limit := fmt.Sprint(takesTurn(act, limits()))
	if limit == "0" {
		limit = "null"
	}
	end := s.tally.begin(fmt.Sprintf("the %s becomes %s", act.Target, limit))
	defer end()
	if err := s.setLimit(ctx, s.repositories[slices.Index(limitables(), act.Target)], limit); err == nil {
		s.tally.add("limits changed", 1)
	}
}

// setLimit changes the limit of a Repository to a number or to null, as soon as the API server
// accepts it.
func (s *stage) setLimit(ctx context.Context, r *repository, limit string) error {
	patch := []byte(`{"spec":{"concurrency_limit":` + limit + `}}`)
	return cluster.Poll(ctx, 200*time.Millisecond, func() error {
		_, err := s.installation.Plumbline.PipelinesascodeV1alpha1().Repositories(r.namespace).Patch(ctx, r.name(),
			types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// finalLimit is the last limit of a repository by its first one, 0 for none: high enough that its
// queue ends in time, and still a limit.
func finalLimit(first int) string {
	if first == 0 {
		return "null"
	}
	return fmt.Sprint(slices.Max(limits()))
}

// Limits returns a schedule of so many deliveries in a time. Limits change, and controllers are
// killed at every kind of call in turn, before the call takes effect and after. Nothing else is
// disturbed, so a short Patience is enough.
func Limits(seed uint64, long time.Duration, events int) (acts []Act) {
	r := rand.New(rand.NewPCG(seed, 1))
	mean := max(long/time.Duration(max(1, events)), time.Millisecond)
	for at := between(r, mean); len(acts) < events; at += between(r, mean) {
		acts = append(acts, Act{At: at, Kind: choose(r, deliveries()).kind})
	}
	long = acts[len(acts)-1].At
	for at, n := trap/4, 0; at < long; at, n = at+trap, n+1 {
		acts = append(acts, Act{At: at, Lasts: trap, Kind: killingInTurn, Target: "controllers", Nth: n})
	}
	for at := between(r, limitEvery); at < long; at += between(r, limitEvery) {
		acts = append(acts, Act{At: at, Kind: limiting, Target: pick(r, limitables()), Nth: r.IntN(len(limits()) - 1)})
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return cmp.Compare(a.At, b.At) })
	for i := range acts {
		acts[i].N = i + 1
	}
	return acts
}

// OfLimits returns the options for Limits: the first limits of the repositories, and a patience
// that is enough while no controller is paused or cut off.
func OfLimits() Options { return Options{Limits: []int{1, 3, 10, 1}, Patience: 15 * time.Second} }

// deadly is the moment of a call at which a controller is killed.
type deadly struct {
	call
	when string
	do   cluster.Action
}

// deadlyCalls are the kinds of calls of a controller, those for slots and pruning too, each twice.
func deadlyCalls() (all []deadly) {
	calls := slices.Compact(slices.Concat(
		[]call{{"update", "repositories", "status"}, {"delete", "pipelineruns", ""}},
		callsOf(controller0)[1:],
		[]call{{"list", "pipelineruns", ""}, {"patch", "secrets", ""}},
	))
	for _, on := range calls {
		all = append(all, deadly{on, "before", cluster.Drop()}, deadly{on, "after", cluster.ApplyThenDrop()})
	}
	return all
}

// killInTurn kills the first controller that makes the call whose turn it is.
func (s *stage) killInTurn(ctx context.Context, act Act) {
	at := takesTurn(act, deadlyCalls())
	what := fmt.Sprintf("kill -9 of a controller %s its call: %s", at.when, at.call)
	end := s.tally.begin(what)
	defer end()
	killed := make(chan *part, 1)
	var hit atomic.Bool
	for _, target := range []string{controller0, controller1} {
		p := s.parts[target]
		defer s.processes[target].Proxy.Add(cluster.Rule{Do: at.do, Match: func(c cluster.Call) bool {
			if !at.matches(c) || !hit.CompareAndSwap(false, true) {
				return false
			}
			_ = p.Kill()
			killed <- p
			return true
		}}).Remove()
	}
	select {
	case p := <-killed:
		s.tally.add(what, 1)
		_ = s.up(p)
	case <-ctx.Done():
	case <-time.After(act.Lasts):
		s.tally.add("not killed, because no process made the call: "+at.String(), 1)
	}
}

// remember starts the history of what is stored.
func (s *stage) remember(ctx context.Context, system string) error {
	s.history = &invariants.History{Installation: system, Patience: cmp.Or(s.options.Patience, patience)}
	followed, err := s.options.Cluster.Follow(ctx, invariants.Histories(), s.history.Saw)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.follow, s.followed = stop, make(chan struct{})
	go func() {
		defer close(s.followed)
		s.followErr = followed.Run(following)
	}()
	return nil
}

// remembered returns an error if the history has a gap.
func (s *stage) remembered() error {
	select {
	case <-s.followed:
		return s.followErr
	default:
		return nil
	}
}
