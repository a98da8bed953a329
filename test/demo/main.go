// SPDX-License-Identifier: Apache-2.0

// Command demo shows Plumbline's main job on a real Kubernetes and a real Tekton: three pushes to a
// pull request on GitHub become three truthful checks, or three pushes to a merge request on GitLab
// three truthful commit statuses (-provider=gitlab), one of them while the cluster's admission
// webhook is dead. The author then asks why a pipeline did not start. It exits 0 only if all end as
// announced.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// limit bounds the whole demo once the binaries are built.
const limit = 10 * time.Minute

func main() {
	name := flag.String("provider", "github", "the Git service: github or gitlab")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *name)
	switch {
	case err == nil: // Ctrl-C ends what is left running: nothing is wrong then
	case errors.Is(err, context.Canceled):
		os.Exit(130) // stopped by Ctrl-C before the end
	default:
		fmt.Fprintf(os.Stderr, "\n✗ demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	newService := services[name]
	if newService == nil {
		return fmt.Errorf("there is no provider %q: choose github or gitlab", name)
	}
	dir, err := os.MkdirTemp("", "plumbline-demo-")
	if err != nil {
		return err
	}
	s, err := open(ctx, dir, newService())
	defer s.close()
	if err == nil {
		err = s.show(ctx)
	}
	if err == nil && os.Getenv("KEEP") == "1" {
		s.lookAround()
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		fmt.Println("\nstopping and removing everything")
		s.close()
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("%w\n  the logs are in %s", err, filepath.Join(dir, "cluster", "logs"))
	}
	s.close()
	return os.RemoveAll(dir)
}

// show plays the acts.
func (s *stage) show(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, act := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"(a) The cluster's admission webhook dies right after the PipelineRun is created", s.webhookDies},
		{"(b) Tekton refuses the author's PipelineRun", s.tektonRefuses},
		{"(c) A step fails, and the author asks /why", s.taskFails},
	} {
		s.begin = time.Now()
		fmt.Printf("\n%s\n", act.title)
		if err := act.play(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n✓ all three %s tell the truth\n", s.git.checks)
	return nil
}
