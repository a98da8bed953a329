// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// buildAll builds one program after the other: the go command uses every core for one.
func buildAll(ctx context.Context, progress io.Writer, root, dir string, todo []binary) error {
	if len(todo) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var fetched sync.WaitGroup
	defer fetched.Wait()
	defer cancel()
	for _, b := range todo {
		fetched.Go(func() { fetch(ctx, root, b) })
	}
	_, _ = fmt.Fprintf(progress, "Building %d programs of the test cluster, once, which takes some minutes.\n", len(todo))
	begin := time.Now()
	for i, b := range todo {
		_, _ = fmt.Fprintf(progress, "[%d/%d] %s\n", i+1, len(todo), b.name)
		if err := b.build(ctx, root, dir); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(progress, "Built in %s.\n", time.Since(begin).Round(time.Second))
	return nil
}

// fetch has the go command download what a program is made of, while another one is compiled. Its build tells what fails.
func fetch(ctx context.Context, root string, b binary) {
	_ = exec.CommandContext(ctx, "go", "list", "-C", filepath.Join(root, binariesDir, b.group), "-deps", b.pkg).Run()
}
