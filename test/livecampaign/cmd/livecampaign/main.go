// SPDX-License-Identifier: Apache-2.0

// Command livecampaign disturbs an installation of Plumbline, harmlessly, and reports whether each
// event of a canary Repository came to its end, once and truthfully.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/livecampaign"
)

const usage = `livecampaign --namespace NAMESPACE --repository NAME [flags]

Disturbs an installation of Plumbline while people push to a canary Repository, and judges by the objects in the cluster
whether each event comes to its end. It prints what it will do and asks before it starts. It uses the rights of the
kubeconfig's user, and removes what it made, also after an interrupt; --clean removes what a killed campaign has left.

The exit code is 0, or 1 if a promise was broken, or 2 if that could not be judged.

Flags:
`

// The exit codes.
const exitOK, exitBroken, exitUnjudged = 0, 1, 2

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	code := run(ctx, os.Args[1:], process{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// process has the streams of a process.
type process struct {
	in       io.Reader
	out, err io.Writer
}

// call is one call of the command.
type call struct {
	process
	livecampaign.Options
	kubeconfig, context string
	minutes             float64
	yes, clean          bool
}

// run returns the exit code.
func run(ctx context.Context, args []string, p process) int {
	c := &call{process: p}
	f := flag.NewFlagSet("livecampaign", flag.ContinueOnError)
	f.SetOutput(p.err)
	f.Usage = func() { _, _ = fmt.Fprint(p.err, usage); f.PrintDefaults() }
	c.define(f)
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUnjudged // the flag package has written why
	}
	if f.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag: --help lists the flags", f.Arg(0))
	} else {
		err = c.play(ctx)
	}
	switch {
	case errors.Is(err, livecampaign.ErrBroken):
		return exitBroken
	case err != nil:
		_, _ = fmt.Fprintln(p.err, "livecampaign:", err)
		return exitUnjudged
	}
	return exitOK
}

func (c *call) define(f *flag.FlagSet) {
	f.StringVar(&c.Canary.Namespace, "namespace", "", "`namespace` of the canary Repository")
	f.StringVar(&c.Canary.Name, "repository", "", "`name` of the canary Repository")
	f.StringVar(&c.System, "system-namespace", "plumbline", "`namespace` that Plumbline is installed in")
	c.Faults = livecampaign.Names()
	f.Func("faults", "`faults` to make, separated by commas (default "+strings.Join(c.Faults, ",")+
		")", func(list string) error {
		c.Faults = strings.Split(list, ",")
		return nil
	})
	f.Float64Var(&c.minutes, "minutes", 10, "`minutes` of faults; what is due then is judged afterwards")
	f.DurationVar(&c.Pause, "pause", 30*time.Second, "`time` between two faults")
	f.DurationVar(&c.Hold, "refuse-for", time.Minute, "`time` for which patches are refused, each time")
	f.DurationVar(&c.Deadline, "deadline", 3*time.Minute, "`time` within which a promise has to come true")
	f.StringVar(&c.Push, "push-command", "",
		"shell `command` that makes one push to the canary's repository; empty makes none")
	f.DurationVar(&c.Every, "every", time.Minute, "`time` between two pushes of --push-command")
	f.BoolVar(&c.yes, "yes", false, "start without asking")
	f.BoolVar(&c.clean, "clean", false, "only remove what a campaign against this canary has left")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default KUBECONFIG or ~/.kube/config)")
	f.StringVar(&c.context, "context", "", "`context` of the kubeconfig (default the current one)")
}

func (c *call) play(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	c.Out, c.Length = c.out, time.Duration(c.minutes*float64(time.Minute))
	k, err := livecampaign.Connect(c.kubeconfig, c.context, c.Options)
	if err != nil {
		return err
	}
	if c.clean {
		return k.Clean(ctx)
	}
	plan, err := k.Plan(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		c.out,
		"For %s, one after the other, against Repository %s of the Plumbline in namespace %s:\n  %s\n",
		c.Length, c.Canary, c.System, strings.Join(plan, "\n  "),
	)
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	if !c.yes && !c.confirmed(ctx) {
		return errors.New("nothing was done: type yes, or give --yes")
	}
	return k.Run(ctx)
}

// check refuses flags that are missing or out of range.
func (c *call) check() error {
	if c.Canary.Namespace == "" || c.Canary.Name == "" {
		return errors.New("--namespace and --repository name the canary Repository: give both")
	}
	for _, name := range c.Faults {
		if !slices.Contains(livecampaign.Names(), name) {
			return fmt.Errorf("--faults: no fault is called %q (all: %s)", name, strings.Join(livecampaign.Names(), ", "))
		}
	}
	if c.minutes <= 0 || min(c.Pause, c.Hold, c.Deadline, c.Every) <= 0 {
		return errors.New("--minutes, --pause, --refuse-for, --deadline and --every must be above 0")
	}
	return nil
}

// confirmed asks. No answer, and an interrupt, mean no.
func (c *call) confirmed(ctx context.Context) bool {
	_, _ = fmt.Fprint(c.out, "Type yes to start: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case line := <-answer:
		return line == "yes"
	case <-ctx.Done():
		return false
	}
}
