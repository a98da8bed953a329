// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/migrate"
)

const migrateOperatorLong = `Turns Pipelines-as-Code off in the Tekton operator, and keeps all Repositories. Without --apply it only prints
what it would do.

An object of the operator owns the CustomResourceDefinition of Repositories. If you turn Pipelines-as-Code off yourself, the
operator deletes this object, and Kubernetes deletes all Repositories. The command writes them to a file, refuses their
deletion by a policy, removes the owner references, sets enable: false in TektonConfig, and waits until the operator has
deleted Pipelines-as-Code. It compares the Repositories after each step. Call it again if it was interrupted.`

const migrateOperatorExample = `  plumb migrate operator                  # what would happen
  plumb migrate operator --apply          # turn Pipelines-as-Code off
  plumb migrate operator --back --apply   # turn it on again`

const backupFile = "plumb-repositories.yaml"

func (p Process) migrateOperator() *cobra.Command {
	f, o := &migrateFlags{}, &migrate.Operator{}
	c := &cobra.Command{
		Use: "operator", Short: "Turn Pipelines-as-Code off in the Tekton operator, and keep the Repositories",
		Long: migrateOperatorLong, Example: migrateOperatorExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Migration, err = p.migration(f); err != nil {
				return err
			}
			if !filepath.IsAbs(o.Backup) {
				o.Backup = filepath.Join(p.Dir, o.Backup)
			}
			return o.Run(c.Context())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.Apply, "apply", false, "change the cluster; without it nothing is changed")
	flags.BoolVar(&o.Back, "back", false, "turn Pipelines-as-Code on again")
	flags.StringVar(&o.Backup, "backup", backupFile, "`file` that gets all Repositories")
	f.defineMigrate(c, moveTimeout)
	return c
}
