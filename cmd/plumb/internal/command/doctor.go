// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/doctor"
)

const doctorLong = `Checks an installation with your own rights, and prints one line for each check: passed, failed with
what to do, "not allowed" with the right that you lack, or skipped if the API server does not answer. It changes
nothing.

The exit code is 0 if every check passed, 1 if one failed, and 2 if none failed and you may not read everything.`

const doctorExample = `  plumb doctor --before-install      # does the cluster have what Plumbline needs?
  plumb doctor                       # is the installation complete and does it run?
  plumb doctor --without-github-app  # an installation for GitLab only
  plumb doctor -o json`

// doctorFlags are those of plumb doctor.
type doctorFlags struct {
	target
	options            preflight.Options
	before, withoutApp bool
	output             string
}

func (p Process) doctor() *cobra.Command {
	f := &doctorFlags{}
	c := &cobra.Command{
		Use: "doctor", Short: "Check the installation in a cluster", Long: doctorLong, Example: doctorExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runDoctor(c.Context(), f) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.before, "before-install", false, "check only what the cluster needs before Plumbline is installed")
	flags.BoolVar(&f.withoutApp, "without-github-app", false, "the installation has no GitHub App")
	flags.BoolVar(&f.options.Coexist, "coexist-with-pac", false, "a running Pipelines-as-Code is intended")
	flags.StringVar(&f.options.AppSecret, "app-secret", defaultAppSecret, "`name` of the Secret of the GitHub App")
	f.define(c)
	flags.StringVarP(&f.output, "output", "o", outputTable, "`form` of the answer: table, json")
	_ = c.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{outputTable, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p Process) runDoctor(ctx context.Context, f *doctorFlags) error {
	if f.output != outputTable && f.output != outputJSON {
		return fmt.Errorf("-o %q is not one of table, json", f.output)
	}
	f.options.Namespace, f.options.ConfigMap = f.system, f.configMap
	config, unusable := &rest.Config{}, error(nil)
	if cluster, err := f.Connect(); err != nil {
		unusable = err
	} else {
		config = cluster.Config
	}
	checker, err := preflight.New(config, f.options)
	if err != nil {
		return err
	}
	first, others := checker.First(), checker.Installation(!f.withoutApp)
	if f.before {
		others = checker.Prerequisites()
	}
	var results []doctor.Result
	if unusable != nil {
		results = doctor.Unreachable(unusable, first, others)
	} else {
		results = doctor.Examine(ctx, first, others)
	}
	if f.output == outputJSON {
		err = doctor.WriteJSON(p.Out, f.system, results)
	} else {
		err = doctor.WriteTable(p.Out, results)
	}
	if err != nil {
		return err
	}
	switch doctor.Worst(results) {
	case doctor.Passed:
		return nil
	case doctor.NotAllowed:
		return errors.New(
			"nothing failed, and you may not check everything: ask an administrator of the cluster for the rights above",
		)
	}
	return errAuthor
}
