// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// node is what scenarios use. Its fields are set by the scenarios that start things.
type node struct {
	settings
	dir    string
	failed context.CancelCauseFunc // ends all scenarios: a process of the node has ended

	*installation.Installation
	config    *rest.Config
	receivers string // the URL of the receivers' Service
}

// inside is the stage that starts everything and plays the scenarios. It then stays until it is
// killed.
func inside(ctx context.Context, dir string, s settings) error {
	syscall.CloseOnExec(3)
	results := os.NewFile(3, "results")
	// Programs that ask for a folder of temporary files get the node's.
	if err := os.Setenv("TMPDIR", filepath.Join(dir, "tmp")); err != nil {
		return err
	}
	running, failed := context.WithCancelCause(ctx)
	n := &node{settings: s, dir: dir, failed: failed}
	for _, scenario := range chosen(s.only) {
		r := n.play(running, scenario)
		if err := json.NewEncoder(results).Encode(r); err != nil {
			return fmt.Errorf("reporting a result: %w", err)
		}
		if r.Failed && scenario.first {
			break
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (n *node) play(ctx context.Context, s scenario) row {
	ctx, cancel := context.WithTimeout(ctx, n.limit)
	defer cancel()
	begin := time.Now()
	seen, err := s.play(n, ctx)
	r := row{What: s.what, Seen: seen, Took: time.Since(begin)}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(err, cause)
		}
		r.Failed, r.Seen = true, err.Error()
	}
	return r
}

// until polls until f returns nil.
func until(ctx context.Context, what string, f func() error) error {
	if err := cluster.Poll(ctx, 100*time.Millisecond, f); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}
