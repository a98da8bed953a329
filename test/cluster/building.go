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

	"k8s.io/apimachinery/pkg/util/wait"
)

// tell is how often a build reports the time left.
const tell = 20 * time.Second

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
	_, _ = fmt.Fprintf(progress, "Building %d programs of the test cluster, once: about %s on two cores.\n", len(todo),
		about(left(todo, 0, 0, 0)))
	begin := time.Now()
	for i, b := range todo {
		before := time.Since(begin)
		_, _ = fmt.Fprintf(progress, "[%d/%d] %s\n", i+1, len(todo), b.name)
		stop := every(tell, func() {
			now := time.Since(begin)
			_, _ = fmt.Fprintf(progress, "      %s, about %s left\n", now.Round(time.Second),
				about(left(todo, i, before, now-before)))
		})
		err := b.build(ctx, root, dir)
		stop()
		if err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(progress, "Built in %s.\n", time.Since(begin).Round(time.Second))
	return nil
}

// fetch downloads a program's modules while another one is compiled. Errors show in its build.
func fetch(ctx context.Context, root string, b binary) {
	_ = exec.CommandContext(ctx, "go", "list", "-C", filepath.Join(root, binariesDir, b.group), "-deps", b.pkg).Run()
}

// left estimates the rest of the build, if those before todo[at] took before and that one has been
// built for now: as much longer than usual as they took longer.
func left(todo []binary, at int, before, now time.Duration) time.Duration {
	usual := func(list []binary) (sum time.Duration) {
		for _, b := range list {
			sum += b.usual
		}
		return sum
	}
	scale := 1.0
	if at > 0 {
		scale = float64(before) / float64(usual(todo[:at]))
	}
	scale = max(scale, float64(before+now)/float64(usual(todo[:at+1])))
	rest := func(list []binary) time.Duration { return time.Duration(scale * float64(usual(list))) }
	return max(0, rest(todo[at:at+1])-now) + rest(todo[at+1:])
}

// about rounds a time, because it is an estimate.
func about(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%d s", max(1, d.Round(10*time.Second)/time.Second))
	}
	return fmt.Sprintf("%d min", (d+time.Minute/2)/time.Minute)
}

// every calls f after each interval until stop, which returns when no call is in flight.
func every(interval time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, interval, false, func(context.Context) (bool, error) {
			f()
			return false, nil
		})
	})
	return func() { cancel(); over.Wait() }
}
