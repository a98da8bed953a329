// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulation is a pull request with random pushes, comments and delays. Times have fractions of a
// second, which deliveries do not contain.
type simulation struct {
	*rand.Rand
	seed   uint64
	now    time.Duration
	pushes []push
}

// push makes a commit the head.
type push struct {
	sha, before string
	at          time.Duration
}

// delivery is an event and when it is received, possibly more than once.
type delivery struct {
	Head
	received []time.Duration
}

// told is a time as deliveries contain it.
func told(moment time.Duration) time.Time { return at(int(moment / time.Second)) }

// headAt is the head at a time.
func (s *simulation) headAt(moment time.Duration) (head string) {
	for _, p := range s.pushes {
		if p.at <= moment {
			head = p.sha
		}
	}
	return head
}

// waits advances the time by up to two seconds, or hardly at all.
func (s *simulation) waits() {
	s.now += time.Duration(1 + s.Int64N(int64([]time.Duration{
		100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second,
	}[s.IntN(3)])))
}

// pushed pushes a new commit or an earlier head.
func (s *simulation) pushed() delivery {
	fresh := fmt.Sprintf("%010x%030d", len(s.pushes)+1, 0)
	sha, before := fresh, s.headAt(s.now)
	if len(s.pushes) > 1 && s.IntN(2) == 0 {
		sha = s.pushes[s.IntN(len(s.pushes))].sha
	}
	if sha == before {
		sha = fresh
	}
	s.pushes = append(s.pushes, push{sha, before, s.now})
	return s.delivered(Head{SHA: sha, Before: before, At: told(s.now)})
}

// delivered is when a delivery is received: at once, late, never, or twice.
func (s *simulation) delivered(h Head) delivery {
	d := delivery{Head: h}
	switch s.IntN(8) {
	case 0: // never
	case 1, 2, 3:
		d.received = []time.Duration{s.now}
	case 4:
		d.received = []time.Duration{s.now, s.now + time.Duration(s.Int64N(int64(20*time.Second)))}
	default:
		d.received = []time.Duration{s.now + time.Duration(s.Int64N(int64(8*time.Second)))}
	}
	return d
}

// known is what was received by a time. A redelivery is sometimes recorded again.
func (s *simulation) known(deliveries []delivery, moment time.Duration) (heads []Head) {
	for _, d := range deliveries {
		for i, received := range d.received {
			if received <= moment && (i == 0 || s.IntN(2) == 0) {
				h := d.Head
				h.Received = told(received)
				heads = append(heads, h)
			}
		}
	}
	s.Shuffle(len(heads), func(i, j int) { heads[i], heads[j] = heads[j], heads[i] })
	return heads
}

// A commit that became the head only after the comment never runs, in any order of pushes,
// deliveries and plans. If all pushes are known, a commit runs only if it was the head at that time
// and ever since.
func TestDecideNeverApprovesUnreadCommits(t *testing.T) {
	t.Parallel()
	approvals, moves := 0, 0
	for seed := range uint64(1000) {
		s := &simulation{Rand: rand.New(rand.NewPCG(14, seed)), seed: seed}
		deliveries := []delivery{s.pushed()}
		var comments []time.Duration
		for range 3 + s.IntN(8) {
			s.waits()
			switch s.IntN(5) {
			case 0, 1:
				comments = append(comments, s.now)
			case 2: // a label, say
				deliveries = append(deliveries, s.delivered(Head{SHA: s.headAt(s.now), At: told(s.now)}))
			default:
				deliveries = append(deliveries, s.pushed())
			}
		}
		for _, written := range comments {
			received := written + time.Duration(s.Int64N(int64(4*time.Second)))
			// it is planned at any time after that, or again
			for _, after := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 10 * time.Second, 10 * time.Second} {
				planned := received + time.Duration(s.Int64N(int64(after)))
				head, heads := s.headAt(planned), s.known(deliveries, planned)
				c := Comment{At: told(written), Received: told(received)}
				if s.IntN(4) == 0 {
					c.SHA = s.headAt(written)[:MinDigits+s.IntN(30)]
				}
				approved, why := Decide(c, head, heads)
				if head != s.headAt(written) {
					moves++
				}
				if !approved {
					continue
				}
				approvals++
				s.judge(t, deliveries, written, planned, heads)
				if why != "" {
					t.Errorf("seed %d: approved, and why not is %q", seed, why)
				}
			}
		}
	}
	if approvals < 300 || moves < 300 {
		t.Errorf("%d approvals, and %d comments after which the head moved: the simulation shows too little", approvals,
			moves)
	}
}

// judge compares an approval with what really happened.
func (s *simulation) judge(t *testing.T, deliveries []delivery, written, planned time.Duration, heads []Head) {
	t.Helper()
	head := s.headAt(planned)
	if !slices.ContainsFunc(s.pushes, func(p push) bool { return p.sha == head && p.at < written }) {
		t.Errorf("seed %d: %s runs, and it was pushed after the comment at %v: %v, %+v", s.seed, head, written, s.pushes,
			heads)
	}
	all := true
	for _, p := range s.pushes {
		all = all && (p.at > planned || slices.ContainsFunc(heads,
			func(h Head) bool { return h.SHA == p.sha && h.Before == p.before && h.At.Equal(told(p.at)) }))
	}
	if !all {
		return
	}
	if was := s.headAt(written); was != head {
		t.Errorf("seed %d: %s runs, and %s was the head when the comment was written at %v: %v", s.seed, head, was, written,
			s.pushes)
	}
	for _, p := range s.pushes {
		if p.at > written && p.at <= planned {
			t.Errorf("seed %d: %s runs, and the head was moved to %s since: %v", s.seed, head, p.sha, s.pushes)
		}
	}
}
