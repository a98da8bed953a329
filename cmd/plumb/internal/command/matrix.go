// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/show"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
)

// The tag and the comment of a matrix, by default.
const (
	matrixTag     = "v1.0.0"
	matrixComment = "/test"
)

// runMatrix plans a push, a pull request, a tag, a comment and, if labels are given, a label.
func (w *planner) runMatrix(ctx context.Context, tree *worktree.Tree, files *settings.Settings) error {
	kinds := []delivery.Kind{delivery.Opened, delivery.Pushed, delivery.Tagged, delivery.Commented}
	if w.given("label") {
		kinds = append(kinds, delivery.Labeled)
	}
	var all show.Matrix
	for _, kind := range kinds {
		one := *w
		one.column = &kind
		report, err := one.report(ctx, tree, files, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", columnHeads()[kind], err)
		}
		all = append(all, show.Column{Head: columnHeads()[kind], Report: report})
	}
	out, said := w.command.OutOrStdout(), w.command.ErrOrStderr()
	if err := all.Errors(said, w.terminal(said)); err != nil {
		return err
	}
	write := func() error { return all.Table(out, w.tableOptions(out)) }
	if w.output == outputJSON {
		write = func() error { return all.JSON(out) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return w.verdict(all.Merged())
}

// columnHeads returns the head of each kind's column.
func columnHeads() map[delivery.Kind]string {
	return map[delivery.Kind]string{
		delivery.Opened: "PULL REQUEST", delivery.Pushed: "PUSH", delivery.Tagged: "TAG",
		delivery.Commented: "COMMENT", delivery.Labeled: "LABEL",
	}
}

// checkMatrix refuses flags that have no meaning for several events.
func (w *planner) checkMatrix() error {
	switch {
	case !w.matrix:
		return nil
	case w.output == outputYAML:
		return errors.New("--matrix answers which pipelines start, and -o yaml prints those of one event: leave one out")
	case w.anyGiven("payload", "headers") != "":
		return errors.New("--payload gives one delivery, and --matrix is about several events: leave one out")
	}
	return nil
}
