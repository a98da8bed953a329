// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/migrate"
)

// migrate is the group of commands that move a cluster from Pipelines-as-Code.
func (p Process) migrate() *cobra.Command {
	return group("migrate", "Move from Pipelines-as-Code, one namespace at a time", p.migratePlan(), p.migrateStart())
}

const migratePoll = time.Second

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
		Cluster: cluster, Namespace: f.system, Timeout: f.timeout, Poll: migratePoll, Out: p.Out,
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
	flags.StringVar(&s.AppSecret, "app-secret", defaultAppSecret, "`name` of Plumbline's Secret of the GitHub App")
	flags.StringVar(&s.Global, "global-repository", "pipelines-as-code", "`name` of Plumbline's global Repository")
	f.defineMigrate(c, 0)
	return c
}
