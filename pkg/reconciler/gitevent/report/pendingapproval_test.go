// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// limiterEnv decides about reports with its own clock, and sends those that are due.
type limiterEnv struct {
	*PendingLimiter
	t     *testing.T
	now   time.Time
	heads map[string]string // of the pull requests
	asked int
	wrote []string
	ended map[string]bool
	due   map[string]time.Time
}

func newLimiterEnv(t *testing.T) *limiterEnv {
	t.Helper()
	d := &limiterEnv{
		t: t, now: time.Unix(0, 0), heads: map[string]string{}, ended: map[string]bool{}, due: map[string]time.Time{},
	}
	d.PendingLimiter = NewPendingLimiter(func(event string, after time.Duration) { d.due[event] = d.now.Add(after) })
	return d
}

// report returns the report of an event about a commit of a pull request.
func report(event, commit, pull string) PendingReport {
	return PendingReport{Event: event, Commit: commit, pull: pull, installation: "git.example/1"}
}

// ask does what the report step does with an event.
func (d *limiterEnv) ask(r PendingReport) Answer {
	d.t.Helper()
	answer, wait := d.Decide(r, d.now)
	if answer == Confirm {
		d.asked++
		head := d.heads[r.pull]
		if head == r.Commit {
			head = ""
		}
		d.Head(r, head, d.now)
		answer, wait = d.Decide(r, d.now)
	}
	switch answer {
	case Write:
		d.wrote = append(d.wrote, r.Commit)
		d.Written(r, d.now)
		d.ended[r.Event] = true
	case Needless:
		d.ended[r.Event] = true
	default:
		if wait <= 0 {
			d.t.Fatalf("%s is to come back after %v", r.Event, wait)
		}
		d.due[r.Event] = d.now.Add(wait)
	}
	return answer
}

// until lets time pass in steps of a second, and asks for each event when it is due.
func (d *limiterEnv) until(end time.Duration, all ...PendingReport) {
	d.t.Helper()
	for ; d.now.Before(time.Unix(0, 0).Add(end)); d.now = d.now.Add(time.Second) {
		for _, r := range all {
			if !d.ended[r.Event] && !d.now.Before(d.due[r.Event]) {
				d.ask(r)
			}
		}
	}
}

// S7: of 80 pull requests that are pushed to at once, 20 show at once that they wait, and then one
// every six seconds, until all do.
func TestManyPullRequestsAreReportedSlowlyAndAll(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	var all []PendingReport
	for n := range 80 {
		all = append(all, report(fmt.Sprint("event-", n), fmt.Sprint("commit-", n), fmt.Sprint("pull-", n)))
		d.ask(all[n])
	}
	if len(d.wrote) != Burst {
		t.Fatalf("%d are written at once, want %d", len(d.wrote), Burst)
	}
	d.until(time.Minute, all...)
	if want := Burst + 9; len(d.wrote) != want {
		t.Errorf("%d are written after a minute, want %d", len(d.wrote), want)
	}
	d.until(60*Interval+time.Second, all...)
	if len(d.wrote) != 80 || len(d.ended) != 80 || d.asked != 0 {
		t.Errorf("%d of 80 are written in the end, with %d questions, want all and none", len(d.wrote), d.asked)
	}
	if n := d.waiting(); n != 0 {
		t.Errorf("%d events are remembered", n)
	}
	if other := (PendingReport{Event: "other", Commit: "c", pull: "p",
		installation: "git.example/2"}); d.ask(other) != Write {
		t.Error("another installation waits for this one")
	}
}

// A pull request is reported once a minute, and in the end it shows its head: in whatever order its
// pushes arrive, and whichever of them asks first.
func TestPullRequestShowsItsHeadInTheEnd(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"in order": {1, 2, 3, 4, 5, 6}, "the newest first": {6, 5, 4, 3, 2, 1},
		"mixed": {3, 6, 1, 5, 2, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLimiterEnv(t)
			d.heads["pull"] = "commit-6"
			var all []PendingReport
			for _, n := range order { // one in nine seconds
				all = append(all, report(fmt.Sprint("event-", n), fmt.Sprint("commit-", n), "pull"))
				d.until(time.Duration(9*len(all))*time.Second, all...)
			}
			d.until(PullInterval, all...)
			if len(d.wrote) != 1 {
				t.Errorf("%v are written in the first minute, want one", d.wrote)
			}
			d.until(5*time.Minute, all...)
			if len(d.wrote) > 3 || d.asked > 3 {
				t.Errorf("%v are written, with %d questions", d.wrote, d.asked)
			}
			if d.shown("pull") != "commit-6" && order[0] != 6 || len(d.ended) != len(order) {
				t.Errorf("%v are written, %d ended: want the head, and nothing to wait", d.wrote, len(d.ended))
			}
		})
	}
}

// wantSettled checks that each pull request shows its head, and that so many events are settled.
func (d *limiterEnv) wantSettled(t *testing.T, events int) {
	t.Helper()
	for pull, head := range d.heads {
		if d.shown(pull) != head {
			t.Errorf("%s shows %s, want its head", pull, d.shown(pull))
		}
	}
	if len(d.ended) != events {
		t.Errorf("%d of %d events have ended", len(d.ended), events)
	}
}

func (d *limiterEnv) shown(pull string) string {
	p, _ := d.pulls.Get(pull)
	return p.shown
}

// waiting returns how many events have a ticket.
func (d *limiterEnv) waiting() (n int) {
	var pulls []string
	d.pulls.DeleteFunc(func(name string) bool {
		pulls = append(pulls, name)
		return false
	})
	for _, name := range pulls {
		p, _ := d.pulls.Get(name)
		n += len(p.tickets)
	}
	return n
}

// Repeated pushes to many pull requests cost no more questions than reports: a replaced commit asks
// for nothing, and the newest commit does not wait for it.
func TestManyPushesToManyPullRequestsCostLittle(t *testing.T) {
	t.Parallel()
	const pulls, pushes = 40, 10
	d := newLimiterEnv(t)
	var all []PendingReport
	for n := range pushes { // every half minute
		for p := range pulls {
			pull, commit := fmt.Sprint("pull-", p), fmt.Sprintf("commit-%d-%d", p, n)
			d.heads[pull] = commit
			all = append(all, report(fmt.Sprint(pull, "-", n), commit, pull))
		}
		d.until(time.Duration(30*(n+1))*time.Second, all...)
	}
	minutes := 5
	if most := Burst + minutes*int(time.Minute/Interval) + 1; len(d.wrote) > most || d.asked > 2*most {
		t.Errorf("%d reports and %d questions in %d minutes, want at most %d and twice that", len(d.wrote), d.asked, minutes,
			most)
	}
	d.until(15*time.Minute, all...)
	d.wantSettled(t, pulls*pushes)
}

// An untrusted user who pushes to many pull requests again and again does not exhaust the
// Repository's budget of unsettled events (1,000), beyond which all deliveries are refused: one
// event per pull request waits.
func TestReplacedPushesDoNotWait(t *testing.T) {
	t.Parallel()
	const pulls, pushes = 80, 20
	d := newLimiterEnv(t)
	var all []PendingReport
	for n := range pushes { // every five seconds
		for p := range pulls {
			r := report(fmt.Sprintf("event-%d-%d", p, n), fmt.Sprintf("commit-%d-%d", p, n), fmt.Sprint("pull-", p))
			if n > 0 {
				r.before = fmt.Sprintf("commit-%d-%d", p, n-1)
			}
			d.heads[r.pull] = r.Commit
			all = append(all, r)
		}
		d.until(time.Duration(5*(n+1))*time.Second, all...)
		if waiting := d.waiting(); waiting > pulls {
			t.Fatalf("%d events wait after %d pushes to %d pull requests", waiting, n+1, pulls)
		}
	}
	d.until(15*time.Minute, all...)
	d.wantSettled(t, pulls*pushes)
}

// After a push back to an earlier commit, whichever delivery comes first, the head shows it.
func TestRestoredHeadIsReported(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 3, 2, 1}, {3, 2, 1, 0}, {0, 2, 3, 1}} {
		d := newLimiterEnv(t)
		d.heads["pull"] = "a"
		pushes := []PendingReport{report("event-0", "z", "pull"), report("event-1", "a", "pull"),
			report("event-2", "b", "pull"), report("event-3", "a", "pull")}
		pushes[1].before, pushes[2].before, pushes[3].before = "z", "a", "b"
		var all []PendingReport
		for n, at := range order {
			all = append(all, pushes[at])
			d.until(time.Duration(n+1)*time.Second, all...)
		}
		d.until(6*time.Minute, all...)
		if !slices.Contains(d.wrote, "a") || len(d.ended) != len(pushes) {
			t.Errorf("%v: %v are written, %d have ended", order, d.wrote, len(d.ended))
		}
	}
}

// Reopening a pull request again and again writes nothing new; a redelivery does.
func TestShownCommitIsNotReportedAgain(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	d.ask(report("event-1", "commit", "pull"))
	if got := d.ask(report("event-2", "commit", "pull")); got != Needless {
		t.Errorf("the second event of a commit: %v", got)
	}
	again := report("event-1-r1", "commit", "pull")
	again.again = true
	d.until(2*time.Minute, again)
	if len(d.wrote) != 2 {
		t.Errorf("%d reports, want one more for a delivery that was sent again", len(d.wrote))
	}
}

// An answer of a replica that may not have a push yet ends nothing: the Git service is asked again.
func TestLaggingReplicaDropsNoReport(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	d.heads["pull"] = "commit-2"
	all := []PendingReport{report("event-1", "commit-1", "pull"), report("event-2", "commit-2", "pull")}
	d.until(50*time.Second, all...)
	all = append(all, report("event-3", "commit-3", "pull")) // the Git service shows it later
	d.until(90*time.Second, all...)
	d.heads["pull"] = "commit-3"
	d.until(6*time.Minute, all...)
	if d.shown("pull") != "commit-3" {
		t.Errorf("%v are written, want the newest at last", d.wrote)
	}
}
