// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// The forms of output.
const (
	outputTable = "table"
	outputYAML  = "yaml"
	outputJSON  = "json"
)

func outputs() []string { return []string{outputTable, outputYAML, outputJSON} }

// currentBranch is the value of --push without one; no branch can have this name.
const currentBranch = "the current branch"

// flags are those of plumb plan.
type flags struct {
	// What describes the event.
	push, tag, base, head, sender, url, service string
	// comments is one at most.
	comments, labels, changed []string
	number                    int64
	// A recorded delivery.
	payload, headers, key string
	// What it is planned with.
	repository, config, namespace, system, global, kubeconfig, context string
	params                                                             []string
	fromCluster, fetch                                                 bool
	// What is answered.
	output    string
	mustStart []string
}

// define adds the flags to a command, in the order in which its help lists them.
func (w *planner) define(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	w.defineEvent(c)
	w.defineRecorded(c)
	w.defineSettings(c)
	f.StringVarP(&w.output, "output", "o", outputTable, "`form` of the answer: "+strings.Join(outputs(), ", "))
	f.StringArrayVar(
		&w.mustStart,
		"must-start",
		nil,
		"exit with 1 unless the pipeline of this `name` starts; may be repeated",
	)
	for name, values := range map[string][]string{"output": outputs(), "provider": delivery.Names()} {
		// An error would mean that the flag does not exist.
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// defineEvent adds the flags that describe an event.
func (w *planner) defineEvent(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.base, "base", "", "`branch` that the pull request goes to (default: the default branch)")
	f.StringVar(&w.head, "head", "", "`branch` that the pull request comes from (default: the one checked out)")
	f.StringVar(&w.push, "push", "", "a push to a `branch`: --push=main; --push alone is the branch checked out")
	f.Lookup("push").NoOptDefVal = currentBranch
	f.StringVar(&w.tag, "tag", "", "a push of the tag of this `name`, at the commit checked out")
	f.StringArrayVar(&w.labels, "label", nil, "a `label` is added to the pull request; with several, the last one is new")
	f.StringArrayVar(&w.comments, "comment", nil, "a person writes this `text` on the pull request")
	f.StringArrayVar(&w.changed, "changed", nil,
		"the changed files, instead of those of Git; added=`FILE`, deleted=FILE and renamed=FILE say how")
	f.Int64Var(&w.number, "number", 0, "`number` of the pull request (default: 1); with --push, of the merged one")
	f.StringVar(&w.sender, "sender", "", "`login` of the sender (default: made of the commit's author)")
	f.StringVar(&w.url, "url", "", "web `URL` of the repository (default: made of the remote's)")
	f.StringVar(&w.service, "provider", "",
		"Git `service`: "+strings.Join(delivery.Names(), " or ")+" (default: gitlab if the host's name says so, else github)")
}

// defineRecorded adds the flags that give a recorded delivery.
func (w *planner) defineRecorded(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.payload, "payload", "",
		"instead of an event, a recorded delivery: `file` with its payload, - for standard input; needs --headers")
	f.StringVar(&w.headers, "headers", "", "`file` with the recorded delivery's request headers")
	f.StringVar(
		&w.key,
		"delivery",
		"",
		"`key` of the delivery; names of PipelineRuns are made of it where the payload has no time (default: "+delivery.Key+")",
	)
}

// defineSettings adds the flags about what the event is planned with.
func (w *planner) defineSettings(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.repository, "repository", "", "`file` with the Repository (default: one that has only the URL)")
	f.StringVar(&w.config, "config", "", "`file` with the ConfigMap plumbline (default: its defaults)")
	f.StringArrayVar(&w.params, "param", nil, "`name=value` of a custom param, instead of the Repository's")
	f.BoolVar(&w.fromCluster, "from-cluster", false,
		"read the Repositories, the ConfigMap and Secrets from the kubeconfig's cluster, except for those that files give")
	f.StringVarP(
		&w.namespace,
		"namespace",
		"n",
		"",
		"`namespace` of the Repository (default: its file's, else \"default\")",
	)
	f.StringVar(&w.system, "system-namespace", "plumbline", "`namespace` that Plumbline is installed in")
	f.StringVar(&w.global, "global-repository", "pipelines-as-code",
		"`name` of the Repository in that namespace whose settings complete all others")
	f.StringVar(&w.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG or ~/.kube/config)")
	f.StringVar(&w.context, "context", "", "`context` of the kubeconfig (default: the current one)")
	f.BoolVar(&w.fetch, "fetch", false, "fetch what annotations refer to on the web and on hubs")
}

// given reports whether a flag is there, even with an empty value.
func (w *planner) given(name string) bool { return w.command.Flags().Changed(name) }

// anyGiven returns the first flag of a list that is there, "" if none is.
func (w *planner) anyGiven(names ...string) string {
	for _, name := range names {
		if w.given(name) {
			return "--" + name
		}
	}
	return ""
}

// check refuses flags that contradict each other. Arguments are more files of --changed, as a shell
// expands them.
func (w *planner) check(args []string) error {
	if len(args) > 0 && !w.given("changed") {
		if w.push == currentBranch {
			return fmt.Errorf("%q is not a flag: write --push=%s for a push to that branch", args[0], args[0])
		}
		return fmt.Errorf("%q is not a flag: only --changed is followed by files", args[0])
	}
	w.changed = append(w.changed, args...)
	if !slices.Contains(outputs(), w.output) {
		return fmt.Errorf("-o %q is none of %s", w.output, strings.Join(outputs(), ", "))
	}
	if slices.Contains(w.changed, "") {
		return errors.New("--changed needs the path of a file, from the top of the working tree on")
	}
	if w.number < 0 {
		return errors.New("--number is not the number of a pull request: they count from 1")
	}
	if err := w.checkEvent(); err != nil {
		return err
	}
	return w.checkSettings()
}

// checkEvent refuses flags that describe two events.
func (w *planner) checkEvent() error {
	var kinds []string
	for _, name := range []string{"push", "tag", "label", "comment"} {
		if w.given(name) {
			kinds = append(kinds, "--"+name)
		}
	}
	if len(w.comments) > 1 {
		return errors.New("each --comment is an event of its own: ask about one after the other")
	}
	if len(kinds) > 1 {
		return fmt.Errorf("%s are different events: ask about one after the other", strings.Join(kinds, " and "))
	}
	if err := w.checkRecorded(); err != nil {
		return err
	}
	branch := w.anyGiven("base", "head")
	switch {
	case w.given("push") && branch != "":
		return fmt.Errorf("%s is a branch of a pull request, and --push is a push: --push=main is a push to main", branch)
	case w.given("tag") && branch != "":
		return fmt.Errorf("%s is a branch of a pull request, and --tag pushes a tag: leave one out", branch)
	case w.given("tag") && w.given("number"):
		return errors.New("--number is that of a pull request, and --tag pushes a tag: leave one out")
	}
	return w.checkEmpty("base", "head", "push", "tag", "sender", "url", "provider", "payload", "headers", "delivery")
}

// checkRecorded refuses half a delivery, and a delivery together with flags that describe an event.
func (w *planner) checkRecorded() error {
	recorded := w.anyGiven("payload", "headers")
	describes := w.anyGiven("push", "tag", "label", "comment", "base", "head", "sender", "url", "provider")
	switch {
	case recorded != "" && describes != "":
		return fmt.Errorf(
			"%s gives a delivery, which says itself what happened, and %s describes an event: leave one of them out",
			recorded,
			describes,
		)
	case w.given("payload") && !w.given("headers"):
		return errors.New(
			"--payload needs --headers: they say which service it is of and what it is about; the page of the delivery shows both",
		)
	case w.given("headers") && !w.given("payload"):
		return errors.New("--headers needs --payload: the page of the delivery shows both")
	case w.payload == stdin && w.headers == stdin:
		return errors.New("--payload and --headers cannot both be read from standard input: save one in a file")
	}
	return nil
}

// checkSettings refuses flags that would have no effect.
func (w *planner) checkSettings() error {
	if name := w.anyGiven("kubeconfig", "context", "global-repository"); name != "" && !w.fromCluster {
		return fmt.Errorf("%s is about a cluster, and none is asked: add --from-cluster", name)
	}
	return w.checkEmpty("repository", "config", "namespace", "system-namespace", "kubeconfig", "context")
}

// checkEmpty refuses flags without a value, such as an unset variable of a shell.
func (w *planner) checkEmpty(names ...string) error {
	for _, name := range names {
		if w.given(name) && w.command.Flags().Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s has no value: give one, or leave it out", name)
		}
	}
	for name, values := range map[string][]string{"comment": w.comments, "label": w.labels, "must-start": w.mustStart} {
		if slices.Contains(values, "") {
			return fmt.Errorf("--%s has no value: give one, or leave it out", name)
		}
	}
	return nil
}

// changes are the changed files that were given, nil if Git is to be asked.
func (w *planner) changes() *git.Changes {
	if !w.given("changed") {
		return nil
	}
	c := &git.Changes{}
	for _, file := range w.changed {
		how, name, found := strings.Cut(file, "=")
		lists := map[string]*[]string{
			"added": &c.Added, "deleted": &c.Deleted, "renamed": &c.Renamed, "modified": &c.Modified,
		}
		list := lists[how]
		if !found || list == nil {
			list, name = &c.Modified, file
		}
		*list = append(*list, name)
	}
	return c
}

// pullNumber is that of the described pull request.
func (w *planner) pullNumber() int64 { return cmp.Or(w.number, 1) }
