// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/show"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

const planLong = `Shows which pipelines an event would start, and why the others do not start.

Without flags, the event is a pull request from the branch that is checked out to the default branch, with .tekton and
the changed files as they are on disk. Other flags describe another event, or give a delivery that a Git service has
sent. Neither a cluster nor the network is used, unless --from-cluster or --fetch is given.

The exit code is 0 even if nothing starts. It is 1 if a pipeline or a command has a mistake (for example, the command
names a pipeline that does not exist), if a pipeline of --must-start does not start, or, with --strict, for a warning.
It is 2 if there is no answer.`

const planExample = `  plumb plan                        # the pull request that this branch would be
  plumb plan --base release-1       # to another branch
  plumb plan --push=main            # once it is merged
  plumb plan --tag v1.0             # a tag
  plumb plan --label ready          # a label is added to the pull request
  plumb plan --comment "/deploy"    # a user comments on it
  plumb plan -o yaml --push=main    # the PipelineRuns themselves
  plumb plan --payload delivery.json --headers headers.txt`

// maxSettings is the bytes of a Repository, a ConfigMap or the headers; etcd stores no object that
// large.
const maxSettings = 1 << 20

// maxPayload is the bytes of a payload that the receiver takes.
const maxPayload = 25 << 20

// planner is one call of plumb plan.
type planner struct {
	Process
	flags
	command *cobra.Command
	// notes are sentences about the event.
	notes []string
	// column is the kind of event of a column of the matrix; nil without --matrix.
	column *delivery.Kind
}

func (p Process) plan() *cobra.Command {
	w := &planner{Process: p}
	w.command = &cobra.Command{
		Use:     "plan [--changed FILE...]",
		Short:   "Show which pipelines an event would start, and why",
		Long:    planLong,
		Example: planExample,
		RunE:    func(c *cobra.Command, args []string) error { return w.run(c.Context(), args) },
	}
	w.define(w.command)
	return w.command
}

func (w *planner) run(ctx context.Context, args []string) error {
	if err := w.check(args); err != nil {
		return err
	}
	files, err := w.settings()
	if err != nil {
		return err
	}
	recorded, err := w.recorded()
	if err != nil {
		return err
	}
	tree, err := worktree.Open(ctx, w.Dir)
	if err != nil {
		return err
	}
	if w.matrix {
		return w.runMatrix(ctx, tree, files)
	}
	report, err := w.report(ctx, tree, files, recorded)
	if err != nil {
		return err
	}
	return w.print(report)
}

// report plans one event.
func (w *planner) report(
	ctx context.Context, tree *worktree.Tree, files *settings.Settings, recorded *delivery.Delivery,
) (*show.Report, error) {
	sent, err := w.delivery(ctx, tree, files, recorded)
	if err != nil {
		return nil, err
	}
	event, err := sent.Read()
	if err != nil {
		return nil, err
	}
	if event.Ignored != "" {
		return show.Ignored(event.URL, event.Ignored), nil
	}
	return w.plan(ctx, tree, files, sent, event)
}

// delivery returns the recorded delivery, or one that describes the event.
func (w *planner) delivery(
	ctx context.Context, tree *worktree.Tree, files *settings.Settings, recorded *delivery.Delivery,
) (delivery.Delivery, error) {
	if recorded != nil {
		return *recorded, nil
	}
	described, err := w.describe(ctx, tree, files)
	if err != nil {
		return delivery.Delivery{}, err
	}
	return described.Delivery()
}

func (w *planner) plan(
	ctx context.Context, tree *worktree.Tree, files *settings.Settings, sent delivery.Delivery, event delivery.Event,
) (*show.Report, error) {
	if err := w.complete(ctx, files, event.URL); err != nil {
		return nil, err
	}
	w.asIncoming(event.Spec)
	repository := files.Repository
	event.Spec.Repository = v1alpha1.RepositoryReference{
		Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID, URL: repository.Spec.URL,
	}
	request := planning.Request{
		Tree:      tree,
		Delivery:  sent,
		Spec:      event.Spec,
		Settings:  files,
		At:        w.at(ctx, tree, sent, event.Spec),
		Changed:   w.changes(),
		Number:    w.number,
		Namespace: w.system,
		Version:   w.Version,
		From:      w.head,
		To:        w.base,
		Given: planning.Given{
			Sender: w.given("sender") || sent.Recorded,
			Number: w.given("number") || sent.Recorded,
			Author: w.author,
		},
	}
	if request.To == "" {
		request.To = tree.DefaultBranch(ctx)
	}
	if request.From == "" {
		request.From = tree.Branch
	}
	if w.fetch {
		request.Web = web.New(web.Options{UserAgent: "plumbline/" + w.Version})
	}
	if event.Foreign {
		w.note("the delivery is not from the GitHub App; in a cluster, Plumbline takes it only if the Repository names a " +
			"token and a webhook secret (git_provider)")
	}
	result, err := planning.Make(ctx, request)
	if err != nil {
		return nil, err
	}
	w.noteUnknownCommand(result.Plan, repository)
	result.Assumed = append(w.notes, result.Assumed...)
	report, err := show.Of(result)
	if err != nil {
		return nil, err
	}
	return report, report.Judge(ctx)
}

// asIncoming makes the push a request to /incoming for its branch, if one is asked about.
func (w *planner) asIncoming(spec *v1alpha1.GitEventSpec) {
	if w.incoming == "" {
		return
	}
	spec.EventType, spec.Sender, spec.Before = v1alpha1.EventIncoming, v1alpha1.EventIncoming, ""
	spec.Incoming = &v1alpha1.Incoming{Pipeline: w.incoming}
}

// complete adds the settings that the event needs.
func (w *planner) complete(ctx context.Context, files *settings.Settings, url string) error {
	if w.fromCluster {
		from := settings.Cluster{
			Kubeconfig: w.path(w.kubeconfig), Context: w.context, Namespace: w.namespace,
			System: w.system, ConfigMap: w.configMap, Global: w.global,
		}
		if err := files.Complete(ctx, from, url, w.config != ""); err != nil {
			return err
		}
	}
	if err := files.Serve(url, w.namespace); err != nil {
		return err
	}
	for _, warning := range files.Warnings {
		w.say("the ConfigMap has a mistake; the rest of it is used: %s", warning)
	}
	return files.Override(w.params)
}

// at returns where .tekton is read: on disk, or at the commit of a recorded delivery if the clone
// has it.
func (w *planner) at(
	ctx context.Context, tree *worktree.Tree, sent delivery.Delivery, spec *v1alpha1.GitEventSpec,
) string {
	switch {
	case !sent.Recorded || spec.Closes() || spec.Comment != nil && spec.PullRequest != nil:
		return worktree.OnDisk
	case tree.Has(ctx, spec.SHA):
		w.note(".tekton is read at the event's commit %.8s", spec.SHA)
		return spec.SHA
	}
	w.note(".tekton is read as it is on disk, because the clone does not have the event's commit %.8s", spec.SHA)
	return worktree.OnDisk
}

func (w *planner) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// noteUnknownCommand notes that a comment looks like a command and is none, if it starts nothing.
func (w *planner) noteUnknownCommand(made *plan.Plan, repository *pacv1alpha1.Repository) {
	if made.Spec.EventType != match.CommentEvent || len(made.Runs) > 0 {
		return
	}
	words := strings.Fields(made.Spec.Comment.Body)
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") {
		return
	}
	slash := "/"
	if settings := repository.Spec.Settings; settings != nil {
		if prefix, err := command.Prefix(settings.GitOpsCommandPrefix); err == nil && prefix != "" {
			slash += prefix + " "
		}
	}
	var known []string
	for _, kind := range []command.Kind{command.Test, command.Retest, command.OkToTest, command.Cancel, command.Why} {
		known = append(known, slash+string(kind))
	}
	w.note("%s is not a command, so this is an ordinary comment (commands: %s)", words[0], strings.Join(known, ", "))
}
