// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// completeFlags registers the completions of flags: fixed values, and names of the working tree.
func (w *planner) completeFlags(c *cobra.Command) {
	functions := map[string]cobra.CompletionFunc{
		"output":     cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp),
		"provider":   cobra.FixedCompletions(delivery.Names(), cobra.ShellCompDirectiveNoFileComp),
		"tag":        w.completed(tags),
		"must-start": w.completed(pipelines),
	}
	for _, name := range []string{"base", "head", "push"} {
		functions[name] = w.completed(branches)
	}
	for _, name := range []string{"label", "comment", "sender", "author", "number", "url", "param", "delivery", "context",
		"namespace", "system-namespace", "config-map", "global-repository"} {
		functions[name] = cobra.NoFileCompletions
	}
	for name, function := range functions {
		// An error would mean that the flag does not exist.
		_ = c.RegisterFlagCompletionFunc(name, function)
	}
}

// completed returns a completion with names of the working tree. Outside of one there are none.
func (w *planner) completed(names func(context.Context, *worktree.Tree) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		tree, err := worktree.Open(c.Context(), w.Dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := names(c.Context(), tree)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// pipelines returns the names of the pipelines on disk.
func pipelines(ctx context.Context, tree *worktree.Tree) ([]string, error) {
	files, err := tree.Files(ctx, worktree.OnDisk, plan.Definitions)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, definition := range resolve.Load(files).Definitions() {
		if definition.Err == nil {
			names = append(names, definition.Name)
		}
	}
	return names, nil
}

func branches(ctx context.Context, tree *worktree.Tree) ([]string, error) { return tree.Branches(ctx) }

func tags(ctx context.Context, tree *worktree.Tree) ([]string, error) { return tree.Tags(ctx) }
