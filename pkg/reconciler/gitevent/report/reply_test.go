// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"
)

// Commands of untrusted users are answered once per minute and pull request, in the slots that
// reports have.
func TestRepliesToUntrustedUsersAreFew(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	one, two := report("comment-1", "c", "pull"), report("comment-2", "c", "pull")
	if wait := d.Reply(one, d.now); wait != 0 {
		t.Errorf("the first one waits %s", wait)
	}
	d.now = d.now.Add(10 * time.Second)
	if wait := d.Reply(one, d.now); wait != 0 {
		t.Errorf("an answer that was begun waits %s", wait)
	}
	if wait := d.Reply(two, d.now); wait != 50*time.Second {
		t.Errorf("the next one of the pull request waits %s, want the rest of the minute", wait)
	}
	if d.now = d.now.Add(50 * time.Second); d.Reply(two, d.now) != 0 {
		t.Error("the next one waits for longer than a minute")
	}
}

// Answers and reports to many pull requests share the slots of an installation: a burst, and then
// one every six seconds.
func TestRepliesToUntrustedUsersShareTheSlots(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	for n := range Burst / 2 {
		d.ask(report(fmt.Sprint("push-", n), fmt.Sprint("commit-", n), fmt.Sprint("pull-", n)))
	}
	answered := 0
	for n := range Burst {
		if d.Reply(report(fmt.Sprint("comment-", n), "c", fmt.Sprint("pull-", n)), d.now) == 0 {
			answered++
		}
	}
	if len(d.wrote) != Burst/2 || answered != Burst/2 {
		t.Errorf("%d reports and %d answers at once, want %d together", len(d.wrote), answered, Burst)
	}
	waits := report("comment-19", "c", "pull-19")
	if wait := d.Reply(waits, d.now); wait <= 0 || wait > Burst/2*Interval {
		t.Errorf("the last one waits %s", wait)
	}
	if d.now = d.now.Add(Burst / 2 * Interval); d.Reply(waits, d.now) != 0 {
		t.Error("the last one finds no slot")
	}
}

// A report and an answer of one pull request have a slot each, and use it once.
func TestSlotIsUsedOnce(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	first, second := report("comment-1", "c", "pull"), report("comment-2", "c", "pull")
	if wait := d.Reply(first, d.now); wait != 0 {
		t.Fatalf("the first answer waits %s", wait)
	}
	d.now = d.now.Add(PullInterval)
	d.exhaust()
	if _, wait := d.Decide(second, d.now); wait != Interval {
		t.Errorf("the report waits %s, want %s", wait, Interval)
	}
	if wait := d.Reply(second, d.now); wait != 2*Interval {
		t.Errorf("the second answer waits %s, want %s", wait, 2*Interval)
	}
}

// A slot is free again when the pull request has nothing to report any more.
func TestUnneededSlotIsFree(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	d.exhaust()
	one, other := report("event", "c", "pull"), report("event-of-other", "c", "other")
	d.ask(one)
	d.Started(one)
	if answer := d.ask(one); answer != Needless {
		t.Fatalf("a started commit is still reported: %v", answer)
	}
	if _, wait := d.Decide(other, d.now); wait != Interval {
		t.Errorf("the next pull request waits %s, want %s", wait, Interval)
	}
	if _, wait := d.Decide(report("event-2", "d", "pull"), d.now); wait != 2*Interval {
		t.Errorf("the next commit waits %s, want %s: its slot is taken", wait, 2*Interval)
	}
}

// exhaust uses all slots that are free now.
func (d *limiterEnv) exhaust() {
	for n := range Burst {
		d.ask(report(fmt.Sprint("burst-", n), "c", fmt.Sprint("burst-", n)))
	}
}
