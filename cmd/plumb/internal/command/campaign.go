// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/campaign"
)

const campaignLong = `Disturbs an installation of Plumbline, harmlessly, while somebody pushes to a canary Repository, and judges by what the
cluster says whether each event comes to its end, once and truthfully.

What it will do is printed and has to be confirmed first. It has the rights of the kubeconfig's user. What it made is
removed at its end, also when it is interrupted; --clean removes what one that was killed has left.

The exit code is 0, or 1 if a promise was not kept, or 2 if that could not be judged.`

const campaignExample = `  plumb campaign --namespace canary --repository app
  plumb campaign --namespace canary --repository app --minutes 30 --every 2m \
    --push-command 'git -C app commit --quiet --allow-empty -m canary && git -C app push --quiet'
  plumb campaign --namespace canary --repository app --clean`

// campaigner is one call of plumb campaign.
type campaigner struct {
	Process
	campaign.Options
	kubeconfig, context string
	minutes             float64
	yes, clean          bool
}

func (p Process) campaign() *cobra.Command {
	w := &campaigner{Process: p}
	c := &cobra.Command{
		Use:     "campaign --namespace NAMESPACE --repository NAME",
		Short:   "Disturb an installation and judge whether it keeps its promises",
		Long:    campaignLong,
		Example: campaignExample,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return w.run(c.Context(), c) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&w.Canary.Namespace, "namespace", "n", "", "`namespace` of the canary Repository")
	f.StringVar(&w.Canary.Name, "repository", "", "`name` of the canary Repository")
	f.StringVar(&w.System, "system-namespace", "plumbline", "`namespace` that Plumbline is installed in")
	f.StringSliceVar(&w.Faults, "faults", campaign.Names(), "`faults` that are made, with commas between them")
	f.Float64Var(&w.minutes, "minutes", 10, "how many `minutes` faults are made; what is due then is judged after it")
	f.DurationVar(&w.Pause, "pause", 30*time.Second, "`time` between two faults")
	f.DurationVar(&w.Hold, "refuse-for", time.Minute, "`time` for which patches are refused, each time")
	f.DurationVar(&w.Deadline, "deadline", 3*time.Minute, "`time` in which what is promised has to become true")
	f.StringVar(
		&w.Push,
		"push-command",
		"",
		"shell `command` that makes one push to the canary's repository; none is made if not given",
	)
	f.DurationVar(&w.Every, "every", time.Minute, "`time` between two pushes of --push-command")
	f.BoolVar(&w.yes, "yes", false, "do not ask before it begins")
	f.BoolVar(&w.clean, "clean", false, "remove what a campaign against this canary has left, and do nothing else")
	f.StringVar(&w.kubeconfig, "kubeconfig", "", "kubeconfig `file`; KUBECONFIG or ~/.kube/config if not given")
	f.StringVar(&w.context, "context", "", "`context` of the kubeconfig; the current one if not given")
	return c
}

func (w *campaigner) run(ctx context.Context, c *cobra.Command) error {
	if err := w.check(); err != nil {
		return err
	}
	w.Options.Out, w.Length = c.OutOrStdout(), time.Duration(w.minutes*float64(time.Minute))
	k, err := campaign.Connect(w.kubeconfig, w.context, w.Options)
	if err != nil {
		return err
	}
	if w.clean {
		return k.Clean(ctx)
	}
	plan, err := k.Plan(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		c.OutOrStdout(),
		"For %s, one after the other, against Repository %s of the Plumbline in namespace %s:\n  %s\n",
		w.Length,
		w.Canary,
		w.System,
		strings.Join(plan, "\n  "),
	)
	if err != nil {
		return fmt.Errorf("writing what will be done: %w", err)
	}
	if !w.yes && !w.confirmed(ctx, c) {
		return errors.New("nothing was done: type yes, or give --yes")
	}
	err = k.Run(ctx)
	if errors.Is(err, campaign.ErrBroken) {
		return errAuthor
	}
	return err
}

// check refuses what is missing or cannot be.
func (w *campaigner) check() error {
	if w.Canary.Namespace == "" || w.Canary.Name == "" {
		return errors.New("--namespace and --repository say which Repository is the canary: both are needed")
	}
	for _, name := range w.Faults {
		if !slices.Contains(campaign.Names(), name) {
			return fmt.Errorf("--faults %q is none of %s", name, strings.Join(campaign.Names(), ", "))
		}
	}
	if w.minutes <= 0 || min(w.Pause, w.Hold, w.Deadline, w.Every) <= 0 {
		return errors.New("--minutes, --pause, --refuse-for, --deadline and --every are longer than nothing")
	}
	return nil
}

// confirmed asks. Without an answer, or when it is interrupted, nothing is confirmed.
func (w *campaigner) confirmed(ctx context.Context, c *cobra.Command) bool {
	_, _ = fmt.Fprint(c.OutOrStdout(), "Type yes to begin: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case line := <-answer:
		return line == "yes"
	case <-ctx.Done():
		return false
	}
}
