// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/uninstall"
)

const uninstallLong = `Uninstalls Plumbline. Without --yes it only prints which checks are open, what would be deleted,
in which order, and what stays.

Only Plumbline can close a check that it has opened. --close-checks stops the receivers, cancels the runs of all events,
and waits until the checks are closed; --close-checks=wait lets the runs finish instead. Then everything is deleted that
the installation consists of. Repositories, PipelineRuns, the namespace and the App's Secret stay.`

const uninstallExample = `  plumb uninstall                              # what would happen
  plumb uninstall --yes --close-checks         # cancel what runs, then uninstall
  plumb uninstall --yes --close-checks=wait    # let it finish first`

const (
	closeTimeout = 15 * time.Minute
	closePoll    = 2 * time.Second
)

func (p Process) uninstall() *cobra.Command {
	f, u := &target{}, &uninstall.Uninstaller{Out: p.Out, Poll: closePoll}
	c := &cobra.Command{
		Use: "uninstall", Short: "Uninstall Plumbline", Long: uninstallLong, Example: uninstallExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			choices := []string{uninstall.Cancel, uninstall.Wait, uninstall.Leave}
			if u.CloseChecks != "" && !slices.Contains(choices, u.CloseChecks) {
				return fmt.Errorf("--close-checks=%s is not one of %s", u.CloseChecks, strings.Join(choices, ", "))
			}
			cluster, err := f.Connect()
			if err != nil {
				return err
			}
			u.Cluster, u.Namespace = cluster, f.system
			return u.Run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&u.Yes, "yes", false, "uninstall; without it nothing is changed")
	flags.StringVar(&u.CloseChecks, "close-checks", "",
		"`how` to close open checks: cancel their runs, wait for them, or no")
	flags.Lookup("close-checks").NoOptDefVal = uninstall.Cancel
	flags.BoolVar(&u.Repositories, "delete-repositories", false, "also delete all Repositories and their kind")
	flags.DurationVar(&u.Timeout, "timeout", closeTimeout, "how long to wait for checks, and for pods")
	flags.StringVar(&u.AppSecret, "app-secret", defaultAppSecret, "`name` of the Secret of the GitHub App, which stays")
	f.define(c)
	return c
}
