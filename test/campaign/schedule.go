// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Act is one action. The whole list of them follows from the seed.
type Act struct {
	// N numbers the acts from 1.
	N int
	// At is when, from the beginning; Lasts is until it is undone, 0 for what cannot be.
	At, Lasts time.Duration
	// Kind is the name of an entry of deliveries() or disturbances(), Target what a disturbance is
	// done to.
	Kind, Target string
	// Nth numbers the faults of a Kind, those of each Git service by themselves: they take turns,
	// so that each is played about as often. Which is the first follows from the seed: a short
	// campaign plays few.
	Nth int
}

// rand is the act's own source, so that its choices do not depend on other acts.
func (a Act) rand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(a.N))) }

const (
	// deliveryEvery and disturbEvery are the mean times between two. A long campaign has
	// deliveriesAtMost, further apart: each time that Tekton's controller is killed it reads all
	// PipelineRuns there are, and with some 4,000 it does nothing else any more.
	deliveryEvery    = 450 * time.Millisecond
	deliveriesAtMost = 2200
	disturbEvery     = 450 * time.Millisecond
	// rest is how long a target is left alone after a disturbance.
	rest = time.Second
	// roll is how long a rolling restart of the receivers has, rollEvery when one begins. Nothing
	// else is disturbed meanwhile, nor in the time calm before: then no delivery may fail.
	roll, calm = 6 * time.Second, 3 * time.Second
	rollEvery  = 2 * time.Minute
	// first is more than there are faults of a kind.
	first = 100
)

// Schedule returns the acts of a duration, by their start. It depends on the two arguments only.
func Schedule(seed uint64, long time.Duration) (acts []Act) {
	r := rand.New(rand.NewPCG(seed, 0))
	rolls := rolls(long)
	mean := max(deliveryEvery, long/deliveriesAtMost)
	for at := between(r, mean); at < long; at += between(r, mean) {
		acts = append(acts, Act{At: at, Kind: choose(r, deliveries()).kind})
	}
	busy, turn := map[string]time.Duration{}, map[string]int{}
	for at := between(r, disturbEvery); at < long; at += between(r, disturbEvery) {
		d := disturbance(r)
		act := Act{At: at, Lasts: time.Duration(r.Int64N(int64(d.longest))), Kind: d.kind, Target: pick(r, d.targets)}
		if widest(act.Target) {
			act.Lasts /= 2 // nothing goes on meanwhile
		}
		end := act.At + act.Lasts
		disturbs := slices.ContainsFunc(rolls, func(begin time.Duration) bool { return at < begin+roll && end > begin-calm })
		if busy[act.Target] > at || disturbs {
			continue
		}
		busy[act.Target] = end + rest
		turns := act.Kind
		if act.Kind == gitFault {
			turns += act.Target
		}
		act.Nth = int(seed%first) + turn[turns]
		turn[turns]++
		acts = append(acts, act)
	}
	for _, at := range rolls {
		acts = append(acts, Act{At: at, Lasts: roll, Kind: rolling, Target: "receivers"})
	}
	slices.SortStableFunc(acts, func(a, b Act) int { return cmp.Compare(a.At, b.At) })
	for i := range acts {
		acts[i].N = i + 1
	}
	return acts
}

// Compact shortens the idle times of a part of a schedule: they are at most as long as before a
// rolling restart.
func Compact(acts []Act) []Act {
	out := slices.Clone(acts)
	var cut, end time.Duration
	for i := range out {
		out[i].At -= cut
		if idle := out[i].At - end; idle > calm {
			cut += idle - calm
			out[i].At = end + calm
		}
		end = max(end, out[i].At+out[i].Lasts)
	}
	return out
}

// rolls are the starts of rolling restarts: every rollEvery, and one at the end.
func rolls(long time.Duration) (begins []time.Duration) {
	for at := rollEvery; at < long-rollEvery/2; at += rollEvery {
		begins = append(begins, at)
	}
	return append(begins, max(0, long-roll))
}

// between returns a time between two acts, from half of the mean to one and a half.
func between(r *rand.Rand, mean time.Duration) time.Duration {
	return mean/2 + time.Duration(r.Int64N(int64(mean)))
}

// weighted is chosen by a weight.
type weighted interface{ heavy() int }

func choose[T weighted](r *rand.Rand, from []T) T {
	total := 0
	for _, one := range from {
		total += one.heavy()
	}
	n := r.IntN(total)
	for _, one := range from {
		if n -= one.heavy(); n < 0 {
			return one
		}
	}
	panic("nothing has a weight")
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
