// SPDX-License-Identifier: Apache-2.0

// Command demo shows Plumbline's main job on a real Kubernetes and a real Tekton: three pushes become three truthful
// checks, one of them while the cluster's admission webhook is dead. It exits 0 only if all three end as announced.
package main

import (
	"context"
	"errors"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "\n✗ demo: %v\n", err)
		os.Exit(1)
	}
	if ctx.Err() != nil && os.Getenv("KEEP") != "1" {
		os.Exit(130) // stopped by Ctrl-C before the end
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "plumbline-demo-")
	if err != nil {
		return err
	}
	s, err := open(ctx, dir)
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

// show plays the three acts.
func (s *stage) show(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, act := range []func(context.Context) error{s.webhookDies, s.tektonRefuses, s.taskFails} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	fmt.Println("\n✓ all three checks tell the truth")
	return nil
}
