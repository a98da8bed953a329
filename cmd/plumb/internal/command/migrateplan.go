// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/migrate/survey"
)

const migratePlanLong = `Reads a cluster with Pipelines-as-Code, and shows what a move to Plumbline changes: for each installation,
ConfigMap key and Repository, and for the pipelines of the last events. It writes nothing.

For the pipelines, it reads which PipelineRuns Pipelines-as-Code has started, and plans the same events with
Plumbline's planner. That needs the files of the repositories: from clones on this machine, or, with --remote, from
the Git services. --remote uses the credentials of Pipelines-as-Code in the cluster.

The exit code is 0 if nothing blocks the move, 1 if something does, and 2 if there is no answer, also because a right
is missing.`

const migratePlanExample = `  plumb migrate plan                      # settings and Repositories
  plumb migrate plan --clones ~/src       # also pipelines, from clones
  plumb migrate plan --remote             # also pipelines, from the Git services
  plumb migrate plan -o markdown > move.md`

// outputText and outputMarkdown are forms of a report.
const (
	outputText     = "text"
	outputMarkdown = "markdown"
)

// lastEvents is how many events of each Repository are compared by default.
const lastEvents = 5

// migratePlanFlags are those of plumb migrate plan.
type migratePlanFlags struct {
	target
	survey survey.Options
	output string
}

func (p Process) migratePlan() *cobra.Command {
	f := &migratePlanFlags{}
	c := &cobra.Command{
		Use: "plan", Short: "Show what a move from Pipelines-as-Code changes", Long: migratePlanLong,
		Example: migratePlanExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runMigratePlan(c.Context(), f) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.survey.Namespace, "pac-namespace", "", "`namespace` of Pipelines-as-Code (default: look for it)")
	flags.StringVar(&f.survey.Clones, "clones", "", "`directory` with clones of the repositories")
	flags.BoolVar(&f.survey.Remote, "remote", false, "read repositories without a clone from their Git services")
	flags.StringVar(&f.survey.GitHubURL, "github-url", "",
		"`URL` of the GitHub of the App (default: github-url of Plumbline's ConfigMap, or https://github.com)")
	flags.IntVar(&f.survey.Events, "events", lastEvents, "how many of the last events of each Repository are compared")
	f.define(c)
	flags.StringVarP(&f.output, "output", "o", outputText, "`form` of the answer: text, markdown, json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]string{outputText, outputMarkdown, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p Process) runMigratePlan(ctx context.Context, f *migratePlanFlags) error {
	write := map[string]func(*survey.Report) error{
		outputText:     func(r *survey.Report) error { return r.WriteText(p.Out) },
		outputMarkdown: func(r *survey.Report) error { return r.WriteMarkdown(p.Out) },
		outputJSON:     func(r *survey.Report) error { return r.WriteJSON(p.Out) },
	}[f.output]
	if write == nil {
		return fmt.Errorf("-o %q is not one of text, markdown, json", f.output)
	}
	if f.survey.Events < 1 {
		return fmt.Errorf("--events %d: at least 1 event can be compared", f.survey.Events)
	}
	cluster, err := f.Connect()
	if err != nil {
		return err
	}
	checker, err := preflight.New(cluster.Config, preflight.Options{Namespace: f.system, AppSecret: defaultAppSecret})
	if err != nil {
		return err
	}
	o := f.survey
	o.Version, o.Requirements, o.System, o.ConfigMap = p.Version, checker.Versions(), f.system, f.configMap
	if o.Clones != "" && !filepath.IsAbs(o.Clones) {
		o.Clones = filepath.Join(p.Dir, o.Clones)
	}
	report, err := survey.Take(ctx, cluster, o)
	if err != nil {
		return err
	}
	if err := write(report); err != nil {
		return err
	}
	switch {
	case report.Blocked:
		return errAuthor
	case len(report.MissingRights) > 0:
		return errors.New(
			"nothing that was read blocks the move, but not everything was read: this account lacks the right to " +
				strings.Join(report.MissingRights, "; "),
		)
	}
	return nil
}
