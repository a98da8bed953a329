// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/migrate"
)

// migrate is the group of commands that move a cluster from Pipelines-as-Code.
func (p Process) migrate() *cobra.Command {
	return group("migrate", "Move from Pipelines-as-Code, one namespace at a time",
		p.migratePlan(), p.migrateStart(), p.migrateNamespace(), p.migrateOperator(), p.migrateFinish())
}

const (
	migratePoll = time.Second
	moveTimeout = 10 * time.Minute
)

// migrateFlags are those of all commands that move something.
type migrateFlags struct {
	target
	timeout time.Duration
}

func (f *migrateFlags) defineMigrate(c *cobra.Command, timeout time.Duration) {
	f.define(c)
	if timeout > 0 {
		c.Flags().DurationVar(&f.timeout, "timeout", timeout, "how long to wait")
	}
}

func (p Process) migration(f *migrateFlags) (migrate.Migration, error) {
	cluster, err := f.Connect()
	return migrate.Migration{
		Cluster: cluster, Namespace: f.system, ConfigMap: f.configMap, Timeout: f.timeout, Poll: migratePoll, Out: p.Out,
	}, err
}

const migrateStartLong = `Lets Plumbline run next to Pipelines-as-Code. No namespace moves yet.

It finds Pipelines-as-Code, copies the Secret of the GitHub App, the global Repository and the changed settings if Plumbline
has none, and sets pipelines-as-code-url and serve-namespaces in ConfigMap plumbline. What exists already stays. It prints
names, never values.`

func (p Process) migrateStart() *cobra.Command {
	f, s := &migrateFlags{}, &migrate.Start{}
	c := &cobra.Command{
		Use: "start", Short: "Let Plumbline run next to Pipelines-as-Code", Long: migrateStartLong,
		Example: "  plumb migrate start", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if s.Migration, err = p.migration(f); err != nil {
				return err
			}
			return s.Run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.URL, "pac-url", "", "`URL` of the controller of Pipelines-as-Code (default: its Service)")
	defineLogin(flags, &s.AppSecret, &s.Global)
	f.defineMigrate(c, 0)
	return c
}

const migrateNamespaceLong = `Moves namespaces from Pipelines-as-Code to Plumbline, or back with --back.

It changes serve-namespaces in ConfigMap plumbline, waits until Plumbline has claimed the URLs of the namespaces'
Repositories, or released them, and prints what became of each. Pipelines-as-Code finishes its own runs; they are listed.
It also lists the repositories with webhooks of their own, which are to be changed.`

const migrateNamespaceExample = `  plumb migrate namespace team-a team-b        # move two
  plumb migrate namespace team-a --wait        # and wait for the runs of Pipelines-as-Code
  plumb migrate namespace team-a --back        # move it back
  plumb migrate namespace --all --cancel-queued`

func (p Process) migrateNamespace() *cobra.Command {
	f, n := &migrateFlags{}, &migrate.Namespaces{}
	c := &cobra.Command{
		Use: "namespace NAME...", Short: "Move namespaces to Plumbline, or back", Long: migrateNamespaceLong,
		Example: migrateNamespaceExample,
		RunE: func(c *cobra.Command, args []string) (err error) {
			n.Names = slices.Clone(args)
			if n.Migration, err = p.migration(f); err != nil {
				return err
			}
			return n.Run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&n.Back, "back", false, "move them back to Pipelines-as-Code")
	flags.BoolVar(&n.All, "all", false, "all namespaces that have a Repository, or with --back all that have moved")
	flags.BoolVar(&n.CancelQueued, "cancel-queued", false, "cancel the runs that wait in the queue of Pipelines-as-Code")
	flags.BoolVar(&n.Wait, "wait", false, "wait until the runs of Pipelines-as-Code have finished")
	f.defineMigrate(c, moveTimeout)
	return c
}

const migrateFinishLong = `Ends the migration after every namespace has moved.

It refuses while runs of Pipelines-as-Code have not finished, and says how to stop Pipelines-as-Code. When that is stopped, it
removes both keys of the migration from ConfigMap plumbline and deletes the left-over webhook configuration. It concludes the
checks that Pipelines-as-Code has left open, with the results of their runs, and removes its finalizer from finished runs.`

const migrateFinishExample = `  plumb migrate finish
  plumb migrate finish --wait        # for the runs of Pipelines-as-Code
  plumb migrate finish --cancel      # cancel them`

func (p Process) migrateFinish() *cobra.Command {
	f, m := &migrateFlags{}, &migrate.Finish{}
	c := &cobra.Command{
		Use: "finish", Short: "End the migration, and remove what Pipelines-as-Code has left", Long: migrateFinishLong,
		Example: migrateFinishExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if m.Migration, err = p.migration(f); err != nil {
				return err
			}
			return m.Run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&m.Wait, "wait", false, "wait until the runs of Pipelines-as-Code have finished")
	flags.BoolVar(&m.Cancel, "cancel", false, "cancel the runs of Pipelines-as-Code that have not finished")
	flags.BoolVar(&m.LeaveChecks, "leave-checks", false, "leave checks open that cannot be concluded")
	defineLogin(flags, &m.AppSecret, &m.Global)
	f.defineMigrate(c, moveTimeout)
	return c
}

// defineLogin adds the flags for the names of Plumbline's objects.
func defineLogin(flags *pflag.FlagSet, secret, global *string) {
	flags.StringVar(secret, "app-secret", defaultAppSecret, "`name` of Plumbline's Secret of the GitHub App")
	flags.StringVar(global, "global-repository", "pipelines-as-code", "`name` of Plumbline's global Repository")
}
