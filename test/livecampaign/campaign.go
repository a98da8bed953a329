// SPDX-License-Identifier: Apache-2.0

// Package livecampaign disturbs an installation of Plumbline, harmlessly, while people push to a
// canary Repository. It judges by the objects in the cluster whether each event comes to its end,
// once and truthfully. The campaign of test/campaign has a cluster and Git services of its own, and
// judges by them as well.
package livecampaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// lookEvery is the interval between two reads of the canary, of about three calls each.
	lookEvery = 5 * time.Second
	// countedPause is the most that the time between two reads counts towards a deadline.
	countedPause = 3 * lookEvery
	// pushLimit ends a push that hangs.
	pushLimit = 2 * time.Minute
)

// Options are the canary, the faults and the times of a campaign.
type Options struct {
	// Canary is the Repository.
	Canary types.NamespacedName
	// System is the namespace that Plumbline is installed in.
	System string
	// Faults are some of Names.
	Faults []string
	// Length is how long faults are made, and Pause is the time between two of them. Hold is how
	// long patches are refused at a time. Deadline is the time limit for everything that is
	// promised "in the end".
	Length, Pause, Hold, Deadline time.Duration
	// Push is a shell command that makes a push, empty for none; it is run every Every.
	Push  string
	Every time.Duration
	Out   io.Writer
}

// Campaign is one campaign against one canary.
type Campaign struct {
	Options
	clients
	policy *policy
	faults []fault
	judge  *judge

	// known are the names of events and the UIDs of PipelineRuns that were there before.
	known  map[string]bool
	events map[string]v1alpha1.GitEvent

	mu     sync.Mutex // guards what follows, and Out
	diary  []entry
	broken int
	done   map[string]int
}

func newCampaign(o Options, c clients) *Campaign {
	k := &Campaign{
		Options: o, clients: c, judge: newJudge(o.Deadline, policyName(o.Canary)),
		known: map[string]bool{}, events: map[string]v1alpha1.GitEvent{}, done: map[string]int{},
	}
	for _, name := range o.Faults {
		k.faults = append(k.faults, k.fault(name))
	}
	return k
}

// Plan returns sentences about what Run would do. It changes nothing, and fails if a part cannot be
// done. Objects that exist before the campaign are not judged.
func (c *Campaign) Plan(ctx context.Context) ([]string, error) {
	if err := c.newPolicy().left(ctx); err != nil { // a policy that is left refuses patches, whatever the faults are
		return nil, err
	}
	if err := c.served(ctx); err != nil {
		return nil, err
	}
	if err := c.remember(ctx); err != nil {
		return nil, err
	}
	var plan []string
	for i, f := range c.faults {
		sentence, err := f.prepare(ctx)
		if err != nil {
			return nil, fmt.Errorf("the fault %q cannot be made here: %w; --faults says which are", c.Faults[i], err)
		}
		plan = append(plan, c.Faults[i]+": "+sentence)
	}
	if c.Push != "" {
		plan = append(plan, fmt.Sprintf("push: run %q every %s", c.Push, c.Every))
	}
	return plan, nil
}

// Run does what Plan has announced. It judges until Length is over and nothing is due any more, or
// until ctx ends. Then it removes what it created.
func (c *Campaign) Run(ctx context.Context) (err error) {
	// The process that reads the output may be gone, as tee is after Ctrl-C. The campaign must
	// still remove what it created, so SIGPIPE must not end it. SIGPIPE is caught and not ignored,
	// because --push-command would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if c.policy != nil {
		if err := c.policy.begin(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.policy.remove(ctx)) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait() // before the policy is removed
	defer cancel()
	until := time.Now().Add(c.Length)
	work.Go(func() { c.disturb(ctx, until) })
	if c.Push != "" {
		work.Go(func() { c.push(ctx, until) })
	}
	over := make(chan struct{})
	go func() { work.Wait(); close(over) }()
	if err := c.watch(ctx, over); err != nil {
		return err
	}
	return c.conclude()
}

// watch judges until the work is over and nothing is due any more.
func (c *Campaign) watch(ctx context.Context, over <-chan struct{}) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for last, failed := time.Now(), 0; ; {
		now := time.Now()
		done, err := c.judgeNow(ctx, ended(over), min(now.Sub(last), countedPause))
		if last = now; done {
			return nil
		}
		if err != nil && ctx.Err() == nil && failed%12 == 0 { // once a minute
			c.say("the cluster cannot be read: %v", err)
		}
		if failed++; err == nil {
			failed = 0
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(errors.New("interrupted: what was due then is not judged"), c.conclude())
		}
	}
}

// judgeNow reads and judges once. When the work is over and nothing is due, it reads everything,
// and reports whether there is nothing left to wait for.
func (c *Campaign) judgeNow(ctx context.Context, over bool, passed time.Duration) (done bool, err error) {
	last := over && c.judge.patient()
	now, err := c.look(ctx, last)
	if err != nil {
		return false, err
	}
	for _, v := range c.judge.see(now, passed) {
		c.violated(v)
	}
	return last && c.judge.patient(), nil
}

func ended(work <-chan struct{}) bool {
	select {
	case <-work:
		return true
	default:
		return false
	}
}

// disturb makes one fault after the other. It stops when something does not recover, because
// another fault would not be harmless then.
func (c *Campaign) disturb(ctx context.Context, until time.Time) {
	for n := 0; time.Now().Before(until) && len(c.faults) > 0; n++ {
		f, name := c.faults[n%len(c.faults)], c.Faults[n%len(c.faults)]
		err := f.inject(ctx)
		broken := Violation{}
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &broken):
			c.violated(broken)
			c.say("no other fault is made: the installation is not whole")
			return
		case err != nil:
			c.say("%s: not done: %v", name, err)
		default:
			c.count(name)
		}
		if !pause(ctx, c.Pause) {
			return
		}
	}
	pause(ctx, time.Until(until))
}

// push makes the pushes. What they write is printed, and not kept.
func (c *Campaign) push(ctx context.Context, until time.Time) {
	for time.Now().Before(until) {
		limited, cancel := context.WithTimeout(ctx, pushLimit)
		command := exec.CommandContext(limited, "sh", "-c", c.Push) // #nosec G204 -- written by the user who runs this
		command.Stdout, command.Stderr, command.WaitDelay = shown{c}, shown{c}, time.Second
		err := command.Run()
		cancel()
		if err != nil && ctx.Err() == nil {
			c.say("push: the command failed, which breaks no promise: %v", err)
		} else if err == nil {
			c.count("push")
			c.say("push: done")
		}
		if !pause(ctx, c.Every) {
			return
		}
	}
}

// pause returns after d, or false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
