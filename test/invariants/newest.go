// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"slices"
	"time"
)

// Newest is the name of a violation outside of docs/codes.md about pipelines whose newer runs
// cancel older ones: a run was ended by one that Git does not have as newer, or one goes on that
// should not.
const Newest = "newest"

// Head is a commit that a pull request or branch got, and when. One without a commit means that it
// is closed or deleted. A commit occurs once.
type Head struct {
	SHA string
	At  time.Time
}

// Heads are those of each Line, the oldest first.
type Heads map[string][]Head

// place returns the position of a commit among those of a line, -1 if it was never there.
func (h Heads) place(line, sha string) int {
	return slices.IndexFunc(h[line], func(head Head) bool { return head.SHA == sha })
}

// until returns when a commit got a successor, zero if it has none.
func (h Heads) until(line, sha string) time.Time {
	if next := h.place(line, sha) + 1; next > 0 && next < len(h[line]) {
		return h[line][next].At
	}
	return time.Time{}
}

// Superseded returns the violations of the promise that the newest run stays, by the heads, and
// how many runs newer ones have ended. Read the heads after the history: a newer commit was pushed
// before it ended a run.
func (h *History) Superseded(heads func() Heads) (broken []Violation, ended int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := heads()
	courses := map[course][]*contender{}
	for _, runs := range h.contenders {
		for _, run := range runs {
			courses[run.course] = append(courses[run.course], run)
			for _, by := range run.ends {
				broken = append(broken, h.judge(run, by, known)...)
			}
			if len(run.ends) > 0 {
				ended++
			}
		}
	}
	for _, runs := range courses {
		broken = append(broken, left(runs)...)
		broken = append(broken, h.overtaken(runs, known)...)
	}
	slices.SortFunc(broken, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return broken, ended
}

// judge checks whether a newer run ended one: a run of another event, whose pipeline asks for it,
// of the same commit or of one that Git got later. An event may learn from Git alone that it is
// late: then it records itself as the cause.
func (h *History) judge(run *contender, by superseding, heads Heads) []Violation {
	wrong := func(why string) []Violation {
		return []Violation{Violated(Newest, run.run,
			"run %s of commit %s of %s ends at resource version %d because of GitEvent %s and commit %s: %s",
			run.run, run.sha, run.course.line, by.revision, by.event, by.newest, why)}
	}
	newer := h.contenders[by.event][run.course.pipeline]
	switch {
	case by.newest == run.sha && by.event == run.event:
		return wrong("it ends itself")
	case newer == nil || newer.course != run.course || !newer.cancels:
		return wrong("that has no run which ends older ones of the pipeline there")
	case by.event != run.event && newer.sha != by.newest:
		return wrong("that is of another commit")
	case by.newest != run.sha && heads.place(run.course.line, by.newest) <= heads.place(run.course.line, run.sha):
		return wrong("Git got that commit before, or never")
	}
	return nil
}

// left finds commits of which every run has ended because of another one of them.
func left(runs []*contender) (broken []Violation) {
	goes, last := map[string]bool{}, map[string]string{}
	for _, run := range runs {
		own := slices.ContainsFunc(run.ends, func(by superseding) bool { return by.newest == run.sha })
		goes[run.sha] = goes[run.sha] || !own
		last[run.sha] = max(last[run.sha], run.run)
	}
	for sha, goes := range goes {
		if !goes {
			broken = append(broken, Violated(Newest, last[sha],
				"no run of commit %s of pipeline %s of %s is left: each has ended because of another one", sha,
				runs[0].course.pipeline, runs[0].course.line))
		}
	}
	return broken
}

// overtaken finds runs that go on although a newer run has started, of a commit that was Git's
// newest all the time. Cases that cannot be judged are left out: events that had to wait for Git
// or the API server, and changes that a controller may not have seen yet.
func (h *History) overtaken(runs []*contender, heads Heads) (broken []Violation) {
	for _, newer := range runs {
		if !newer.cancels || newer.starts.IsZero() || newer.hindered {
			continue
		}
		place := heads.place(newer.course.line, newer.sha)
		for _, older := range runs {
			if was := heads.place(older.course.line, older.sha); was < 0 || was >= place || older.hindered ||
				!h.goesOn(older, newer, heads.until(newer.course.line, newer.sha)) {
				continue
			}
			broken = append(broken, Violated(Newest, older.run,
				"run %s of commit %s of %s, planned at %s, goes on beside the newer run %s of commit %s, which has started at %s",
				older.run, older.sha, older.course.line, older.planned.Format(time.TimeOnly), newer.run, newer.sha,
				newer.starts.Format(time.TimeOnly)))
		}
	}
	return broken
}

// goesOn reports whether a newer run should have ended an older one. Either the newer event
// settled long after the older run was planned, and the older run was neither finished nor asked
// to end. Or both have run next to each other for long. replaced is when Git got a commit that is
// newer than both.
func (h *History) goesOn(older, newer *contender, replaced time.Time) bool {
	ends := earliest(older.told, older.over, older.settled)
	void := earliest(newer.told, replaced) // from then on it ends nothing
	tells := newer.settled
	if outlives := before(tells, ends) && before(tells, void) && newer.made; outlives &&
		tells.Sub(older.planned) >= h.Patience {
		return true
	}
	begin := older.planned
	if newer.starts.After(begin) {
		begin = newer.starts
	}
	if !newer.made && !newer.over.IsZero() {
		void = earliest(void, newer.over) // it was refused, or given up
	}
	end := earliest(ends, void, tells)
	return !end.IsZero() && end.Sub(begin) >= beside*h.Patience
}

// beside is for how many times the longest lag of a controller two runs may go on next to each
// other. A controller retries later and later, and the API server may be down for most of that
// time.
const beside = 8

// before reports whether something happened before another thing, which may not have happened.
func before(at, other time.Time) bool { return !at.IsZero() && (other.IsZero() || at.Before(other)) }
