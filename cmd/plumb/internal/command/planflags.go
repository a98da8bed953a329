// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// flagGroup are flags under one heading of the help.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// define adds the flags to a command, in the order in which its help lists them.
func (w *planner) define(c *cobra.Command) {
	c.Flags().SortFlags = false
	var groups []flagGroup
	for _, group := range []struct {
		title  string
		define func(*pflag.FlagSet)
	}{
		{"Event", w.defineEvent}, {"Recorded delivery", w.defineRecorded},
		{"Settings", w.defineSettings}, {"Output", w.defineOutput},
	} {
		flags := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		flags.SortFlags = false
		group.define(flags)
		c.Flags().AddFlagSet(flags)
		groups = append(groups, flagGroup{group.title, flags})
	}
	c.SetUsageFunc(func(c *cobra.Command) error { return w.usage(c, groups) })
	w.completeFlags(c)
}

// usage writes how the command is used, with its flags in groups.
func (w *planner) usage(c *cobra.Command, groups []flagGroup) error {
	out := c.OutOrStdout()
	width := w.terminal(out).Width
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
	for _, group := range groups {
		shown := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		shown.SortFlags = false
		group.flags.VisitAll(func(flag *pflag.Flag) {
			copied := *flag
			copied.NoOptDefVal = "" // the usage says it in words, as it says defaults
			if flag.Value.Type() == "string" {
				copied.DefValue = ""
			}
			shown.AddFlag(&copied)
		})
		fmt.Fprintf(&b, "\n%s:\n%s", group.title, shown.FlagUsagesWrapped(width))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// defineEvent adds the flags that describe an event.
func (w *planner) defineEvent(f *pflag.FlagSet) {
	f.StringVar(&w.base, "base", "", "target `branch` of the pull request (default: the default branch)")
	f.StringVar(&w.head, "head", "", "source `branch` of the pull request (default: the current branch)")
	f.StringVar(&w.push, "push", "",
		"instead of a pull request, a push to a branch: --push`[=branch]` (default: the current branch)")
	f.Lookup("push").NoOptDefVal = currentBranch
	f.StringVar(&w.incoming, "incoming", "",
		"a request to /incoming for the pipeline of this `name`, for the branch of --push; --param sets its params")
	f.StringVar(&w.tag, "tag", "", "a push of the tag with this `name`, at the current commit")
	f.StringArrayVar(&w.labels, "label", nil, "a `label` is added to the pull request; of several, the last one is new")
	f.StringArrayVar(&w.comments, "comment", nil, "a user writes this `text` on the pull request")
	f.BoolVar(&w.matrix, "matrix", false, "all of these events in one table; other flags say which tag, comment and label")
	f.StringArrayVar(&w.changed, "changed", nil,
		"the changed files, instead of those of Git; added=`FILE`, deleted=FILE and renamed=FILE say how")
	f.StringVar(&w.sender, "sender", "", "`login` of the user who causes the event (default: made of the commit's author)")
	f.StringVar(&w.author, "author", "",
		"`login` of the pull request's author, who may not write to the repository (default: the sender, who may)")
	f.Int64Var(&w.number, "number", 0, "`number` of the pull request (default: 1); with --push, of the merged one")
	f.StringVar(&w.url, "url", "", "web `URL` of the repository (default: made of the remote's)")
	f.StringVar(&w.service, "provider", "",
		"Git `service`: "+strings.Join(delivery.Names(), " or ")+" (default: gitlab if the host's name says so, else github)")
}

// defineRecorded adds the flags that give a recorded delivery.
func (w *planner) defineRecorded(f *pflag.FlagSet) {
	f.StringVar(&w.payload, "payload", "",
		"instead of an event, a recorded delivery: `file` with its payload, - for standard input; needs --headers")
	f.StringVar(&w.headers, "headers", "", "`file` with the request headers of the recorded delivery")
	f.StringVar(&w.key, "delivery", "",
		"`key` of the delivery, which names of PipelineRuns contain if the payload has no time (default: "+delivery.Key+")")
}

// defineSettings adds the flags about what the event is planned with.
func (w *planner) defineSettings(f *pflag.FlagSet) {
	f.StringVar(&w.repository, "repository", "", "`file` with the Repository (default: one that has only the URL)")
	f.StringVar(&w.config, "config", "", "`file` with Plumbline's ConfigMap (default: its defaults)")
	f.StringArrayVar(&w.params, "param", nil, "`name=value` of a custom param, instead of the Repository's")
	f.BoolVar(&w.fromCluster, "from-cluster", false,
		"read the Repositories, the ConfigMap and Secrets from the kubeconfig's cluster, except for those that files give")
	f.StringVarP(&w.namespace, "namespace", "n", "",
		"`namespace` of the Repository (default: its file's, else default)")
	f.StringVar(&w.system, "system-namespace", "plumbline",
		"`namespace` that Plumbline is installed in (default: plumbline)")
	f.StringVar(&w.configMap, "config-map", config.Name,
		"`name` of the ConfigMap with Plumbline's settings (default: plumbline)")
	f.StringVar(&w.global, "global-repository", "pipelines-as-code",
		"`name` of the Repository in that namespace whose settings complete all others (default: pipelines-as-code)")
	f.StringVar(&w.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG or ~/.kube/config)")
	f.StringVar(&w.context, "context", "", "`context` of the kubeconfig (default: the current one)")
	f.BoolVar(&w.fetch, "fetch", false, "fetch what annotations refer to on the web and on hubs")
}

// defineOutput adds the flags about the answer.
func (w *planner) defineOutput(f *pflag.FlagSet) {
	f.StringVarP(&w.output, "output", "o", outputTable,
		"`form` of the answer: "+strings.Join(outputs(), ", ")+" (default: "+outputTable+")")
	f.StringArrayVar(&w.mustStart, "must-start", nil,
		"exit with 1 unless the pipeline of this `name` starts; may be repeated")
	f.BoolVar(&w.strict, "strict", false, "exit with 1 for warnings, too")
}
