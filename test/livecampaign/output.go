// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// listedFor is how long before a violation an action was done that is listed with it, at most.
const listedFor = 5 * time.Minute

// ErrBroken is returned by a campaign that has printed a violation.
var ErrBroken = errors.New("a promise was not kept")

// entry is something that was done.
type entry struct {
	at   time.Time
	what string
}

func (c *Campaign) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[name]++
}

// say prints an action, and stores it for a later violation.
func (c *Campaign) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := entry{time.Now(), fmt.Sprintf(format, args...)}
	c.diary = append(c.diary, e)
	c.print("%s\n", e)
}

func (e entry) String() string { return e.at.Format(time.TimeOnly) + " " + e.what }

// print writes to a terminal or a file. If that fails, there is no other place to report it.
func (c *Campaign) print(format string, args ...any) { _, _ = fmt.Fprintf(c.Out, format, args...) }

// shown prints what a command of the caller writes.
type shown struct{ *Campaign }

func (s shown) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.Out.Write(text) // as in print
	return len(text), nil
}

// violated prints a violation, with what was done before it.
func (c *Campaign) violated(v Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken++
	c.print(
		"VIOLATION of %s at %s\n  GitEvent: %s\n  PipelineRun: %s\n  %s\n  what was done before:\n",
		v.Promise,
		time.Now().Format(time.TimeOnly),
		v.Event,
		v.Run,
		v.Message,
	)
	for _, e := range c.diary {
		if time.Since(e.at) < listedFor {
			c.print("    %s\n", e)
		}
	}
}

// conclude prints a summary. A campaign that saw no event has proven nothing.
func (c *Campaign) conclude() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs, goOn := 0, 0
	for _, event := range c.events {
		for _, run := range event.Status.Runs {
			runs++
			if !over(run) {
				goOn++
			}
		}
	}
	var done strings.Builder
	for _, name := range append(c.Faults, "push") {
		fmt.Fprintf(&done, " %s %d,", name, c.done[name])
	}
	c.print(
		"done:%s patches refused of %d events\nseen: %d events, %d PipelineRuns, of which %d go on\nviolations: %d\n",
		done.String(),
		len(c.judge.refused),
		len(c.events),
		runs,
		goOn,
		c.broken,
	)
	switch {
	case c.broken > 0:
		return ErrBroken
	case len(c.events) == 0:
		return errors.New("no event came, so nothing was shown: push to the canary meanwhile, or let --push-command do it")
	}
	return nil
}
