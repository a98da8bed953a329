// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"
)

const (
	// maxWaiting bounds for how many it is remembered that they found no room, at some 100 bytes
	// each.
	maxWaiting = 10_000
	// patience is for how long room is kept for an event that was woken and does not come. One that
	// is new may have to wait longer than that for its turn at a Git service
	// (pkg/flowcontrol/fairqueue), and then stands in line again: kept for longer, the memory would
	// be as good as lost to the others while that service hangs.
	patience = time.Minute
	// step is what a wish for much is rounded up to: an event that needs a little more at each
	// attempt finds no room a few times, not a hundred times.
	step = 16 << 20
)

// wish is what an event needs, from its beginning.
type wish struct {
	event, owner string
	need         int
}

func (w wish) little() bool { return w.need <= small }

// line are those who found no room. Owners are served in turn: when one is, its other events that
// need as much, or as little, go behind those of all others, so that nobody waits for a thousand
// events of one owner. Among those of one owner the first comes first.
type line []wish

// join puts an event at the end. One that stands in line keeps its place, and needs what it needed
// before, too: one attempt asks for several things at once.
func (l *line) join(w wish) {
	if !w.little() {
		w.need = min(MaxEvent, (w.need+step-1)/step*step)
	}
	if i := l.index(w.event); i >= 0 {
		(*l)[i].need = max((*l)[i].need, w.need)
		return
	}
	if len(*l) < maxWaiting {
		*l = append(*l, w)
	}
}

func (l *line) leave(event string) {
	*l = slices.DeleteFunc(*l, func(w wish) bool { return w.event == event })
}

func (l line) has(event string) bool { return l.index(event) >= 0 }

func (l line) index(event string) int {
	return slices.IndexFunc(l, func(w wish) bool { return w.event == event })
}

// next takes out the first for whom there is room.
func (l *line) next(r *Room) (wish, bool) {
	var before ahead
	for i, w := range *l {
		if !r.fits(w, 0, before) {
			before.add(w, r.owned)
			continue
		}
		rest := slices.Delete(*l, i, i+1)
		slices.SortStableFunc(rest, func(a, b wish) int { return served(a, w) - served(b, w) })
		*l = rest
		return w, true
	}
	return wish{}, false
}

// served is 1 for what has to stand behind others when one of its owner is served.
func served(w, one wish) int {
	if w.owner == one.owner && w.little() == one.little() {
		return 1
	}
	return 0
}

// ahead is who stands in line before somebody.
type ahead struct {
	// much is what the first of those needs who need much and wait for others than their owner's.
	much int
	// little tells that somebody waits for others who needs little.
	little bool
	// owners are those of whom somebody waits who needs much.
	owners map[string]bool
}

// ahead are all who stand in line.
func (l line) ahead(owned map[string]int) (all ahead) {
	for _, w := range l {
		all.add(w, owned)
	}
	return all
}

func (a *ahead) add(w wish, owned map[string]int) {
	waitsForOthers := w.need <= MaxEvent-owned[w.owner]
	if w.little() {
		a.little = a.little || waitsForOthers
		return
	}
	if a.much == 0 && waitsForOthers && !a.owners[w.owner] {
		a.much = w.need
	}
	if a.owners[w.owner] {
		return
	}
	if a.owners == nil {
		a.owners = map[string]bool{}
	}
	a.owners[w.owner] = true
}

// blocks reports whether an event of an owner that needs much has to wait for those before it.
func (a *ahead) blocks(owner string) bool { return a.much > 0 || a.owners[owner] }
