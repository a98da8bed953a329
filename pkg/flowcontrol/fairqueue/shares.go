// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"time"
)

// Shares are the names of the shares.
func Shares() []string {
	return []string{Work, Namespace, NamespaceHost, Installation, PullRequests, Host}
}

// place is what has a share, e.g. the share "host" of "github.com".
type place struct{ share, of string }

// share is what a place has. It is forgotten when nobody has a turn or waits there.
type share struct {
	place
	taken, limit int
	lines        int       // that need it
	served       uint64    // when a turn of it was last taken, as Turns count them; of a new one, when it was made
	window       *window   // how many the Git service bears; nil where that is not measured
	pulls        bool      // of a namespace's work: whether the last one that was called is a pull request
	since, rests time.Time // of pull requests: when a turn was last taken, and until when none is
}

// Where the shares are that a line is chosen by, in what sharesOf returns for a visit.
const (
	namespaceHostOf = 1
	installationOf  = 3
)

// sharesOf are the shares of which whoever stands in a line needs one turn each: that of its
// namespace's work first, and then, for a visit, from the narrowest to the widest: events of a host
// that hangs are counted as waiting for that host.
func (t *Turns) sharesOf(key lineKey) []*share {
	shares := []*share{t.share(place{Work, key.namespace})}
	if !key.visits {
		if key.pullsOf != "" {
			begun := t.share(place{PullRequests, key.namespace + "/" + key.pullsOf + " begun"})
			begun.limit = t.limit(PullRequests) + 1 // one may hang at the Git service, where it is soon the only one
			shares = append(shares, begun)
		}
		return shares
	}
	narrow, installation := t.share(
		place{NamespaceHost, key.namespace + " at " + key.host},
	), t.share(
		place{Installation, fmt.Sprintf("%s/%d", key.host, key.installation)},
	)
	if key.installation != 0 {
		installation.window = t.window(installation.place)
	} else {
		narrow.window = t.window(narrow.place)
	}
	shares = append(shares, narrow, t.share(place{Namespace, key.namespace}), installation)
	if key.pullsOf != "" && key.fresh {
		shares = append(shares, t.share(place{PullRequests, key.namespace + "/" + key.pullsOf}))
	}
	return append(shares, t.share(place{Host, key.host}))
}

func (t *Turns) share(p place) *share {
	s, known := t.shares[p]
	if !known {
		// Whoever had no event a moment ago is not the one that has waited the longest.
		s = &share{place: p, limit: t.limit(p.share), served: t.served}
		t.shares[p] = s
	}
	return s
}

func (t *Turns) limit(share string) int {
	quarter := t.options.Workers / 4
	return max(
		1,
		map[string]int{Work: 2 * quarter, Namespace: quarter, NamespaceHost: quarter - 1, Installation: 2 * quarter, PullRequests: quarter / 16, Host: 3 * quarter}[share],
	)
}

// full is the first share of which there is no turn, nil if there is one of each.
func (t *Turns) full(shares []*share) *share {
	for _, s := range shares {
		if t.taken(s) {
			return s
		}
	}
	return nil
}

// taken reports whether all turns of a share are.
func (t *Turns) taken(s *share) bool {
	now := t.options.Now()
	return s.taken >= s.limit || now.Before(s.rests) || s.window != nil && s.taken >= s.window.turns(now)
}

// before reports whether a share has fewer turns taken than another one, or as many and none for
// longer. It is not decided for a share and itself.
func (s *share) before(other *share) (first, decided bool) {
	switch {
	case s == other:
		return false, false
	case s.taken != other.taken:
		return s.taken < other.taken, true
	default:
		return s.served < other.served, s.served != other.served
	}
}

func (t *Turns) count(shares []*share) {
	t.served++
	for _, s := range shares {
		s.taken++
		s.served, s.since = t.served, t.options.Now()
	}
}

func (t *Turns) give(shares []*share) {
	for _, s := range shares {
		s.taken--
		t.rest(s)
	}
	t.tidy(shares)
}

// rest lets pull requests of a Repository that wait do so for as long as the one before them took,
// so that they leave half of the time to others.
func (t *Turns) rest(s *share) {
	if s.share != PullRequests || s.lines == 0 {
		return
	}
	now := t.options.Now()
	s.rests = now.Add(min(now.Sub(s.since), maxRest))
	t.alarm(s.rests)
}

// tidy forgets shares that nobody uses: hosts and namespaces come and go as long as the process
// lives.
func (t *Turns) tidy(shares []*share) {
	for _, s := range shares {
		if s.taken == 0 && s.lines == 0 {
			delete(t.shares, s.place)
		}
	}
}

// Taken returns how many turns are taken of each share, e.g. "host github.com". One that nobody has
// a turn of is not in it.
func (t *Turns) Taken() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := map[string]int{}
	for p, s := range t.shares {
		if s.taken > 0 {
			taken[p.share+" "+p.of] = s.taken
		}
	}
	return taken
}
