// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// nothing is the error of a working tree without definitions.
type nothing struct{ sentence string }

func (n *nothing) Error() string { return n.sentence }

func (l *local) nothingIn(ctx context.Context, dir string) error {
	root := l.Tree.Root
	ignored, err := l.Tree.Ignored(ctx, dir)
	if err != nil {
		return err
	}
	if len(ignored) > 0 {
		return nothingf("git ignores what is in %s of %s (git check-ignore -v %s says why): no event would ever see it",
			dir, root, ignored[0])
	}
	if _, err := os.Lstat(filepath.Join(root, dir)); err == nil {
		return nothingf("%s in %s has no .yaml or .yml file: pipelines are PipelineRuns in such files", dir, root)
	}
	if committed, err := l.Tree.Files(ctx, l.Tree.Head.SHA, dir); err == nil && len(committed) > 0 {
		return nothingf("there is no %s in %s, though the commit that is checked out has it: git restore %s brings it back",
			dir, root, dir)
	}
	return nothingf(
		"there is no %s in %s: create %s/build.yaml with a PipelineRun, or run plumb in the working tree that has one", dir,
		root, dir,
	)
}

func nothingf(format string, args ...any) error { return &nothing{fmt.Sprintf(format, args...)} }
