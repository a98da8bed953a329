// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// The forms of output.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputYAML  = "yaml"
	outputJSON  = "json"
)

func outputs() []string { return []string{outputTable, outputWide, outputYAML, outputJSON} }

// currentBranch is the value of --push without one; no branch can have this name.
const currentBranch = "the current branch"

// flags are those of plumb plan.
type flags struct {
	// What describes the event.
	push, tag, incoming, base, head, sender, author, url, service string
	// comments is one at most.
	comments, labels, changed []string
	number                    int64
	// A recorded delivery.
	payload, headers, key string
	// What it is planned with.
	repository, config, configMap, namespace, system, global, kubeconfig, context string
	params                                                                        []string
	fromCluster, fetch                                                            bool
	// What is answered.
	output    string
	mustStart []string
	// matrix plans several events. With strict, warnings fail.
	matrix, strict bool
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
		return fmt.Errorf("-o %q is not one of %s", w.output, strings.Join(outputs(), ", "))
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
	for _, name := range []string{"push", "tag", "label", "comment", "incoming"} {
		if w.given(name) && (name != "push" || !w.given("incoming")) { // the branch of the request
			kinds = append(kinds, "--"+name)
		}
	}
	if len(w.comments) > 1 {
		return errors.New("each --comment is an event of its own: ask about one after the other")
	}
	if len(kinds) > 1 && !w.matrix {
		return fmt.Errorf("%s are different events: ask about one after the other", strings.Join(kinds, " and "))
	}
	if err := cmp.Or(w.checkRecorded(), w.checkMatrix()); err != nil {
		return err
	}
	if err := w.checkBranches(); err != nil {
		return err
	}
	return w.checkEmpty(
		"base", "head", "push", "tag", "incoming", "sender", "author", "url", "provider", "payload", "headers", "delivery",
	)
}

// checkBranches refuses facts of a pull request for a push.
func (w *planner) checkBranches() error {
	branch := w.anyGiven("base", "head")
	switch {
	case w.matrix:
	case w.given("author") && w.anyGiven("push", "tag", "incoming") != "":
		return errors.New("--author is that of a pull request, and a push and a tag have none: --sender pushes them")
	case w.given("incoming") && branch != "":
		return fmt.Errorf("%s is a branch of a pull request: --incoming NAME --push=main is a request for main", branch)
	case w.given("push") && branch != "":
		return fmt.Errorf("%s is a branch of a pull request, and --push is a push: --push=main is a push to main", branch)
	case w.given("tag") && branch != "":
		return fmt.Errorf("%s is a branch of a pull request, and --tag pushes a tag: leave one out", branch)
	case w.given("tag") && w.given("number"):
		return errors.New("--number is that of a pull request, and --tag pushes a tag: leave one out")
	}
	return nil
}

// checkRecorded refuses half a delivery, and a delivery together with flags that describe an event.
func (w *planner) checkRecorded() error {
	recorded := w.anyGiven("payload", "headers")
	describes := w.anyGiven(
		"push",
		"tag",
		"incoming",
		"label",
		"comment",
		"base",
		"head",
		"sender",
		"author",
		"url",
		"provider",
	)
	switch {
	case recorded != "" && describes != "":
		return fmt.Errorf(
			"%s gives a delivery, which says itself what happened, and %s describes an event: leave one of them out", recorded,
			describes,
		)
	case w.given("payload") && !w.given("headers"):
		return errors.New(
			"--payload needs --headers: the headers say which Git service sent it, and for which event; the page of the delivery shows both",
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
	if name := w.anyGiven("kubeconfig", "context", "global-repository", "config-map"); name != "" && !w.fromCluster {
		return fmt.Errorf("%s is about a cluster, and none is asked: add --from-cluster", name)
	}
	return w.checkEmpty("repository", "config", "namespace", "system-namespace", "config-map", "kubeconfig", "context")
}

// checkEmpty refuses flags without a value, such as an unset variable of a shell.
func (w *planner) checkEmpty(names ...string) error {
	for _, name := range names {
		if w.given(name) && w.command.Flags().Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s has no value: give one, or leave it out", name)
		}
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{{"comment", w.comments}, {"label", w.labels}, {"must-start", w.mustStart}} {
		if slices.Contains(flag.values, "") {
			return fmt.Errorf("--%s has no value: give one, or leave it out", flag.name)
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
