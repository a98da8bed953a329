// SPDX-License-Identifier: Apache-2.0

// Command node starts a real Kubernetes node on this machine, installs Tekton and Plumbline on it,
// and plays what only a real node can show: images, probes, preStop hooks, RBAC, Pod Security and
// failures of pods. docs/node.md describes it.
//
// It runs in three stages, each a process that starts the next one:
//
//	outside  builds everything, starts the node, prints the table, and ends the node
//	init     is process 1 of the node's namespaces: it makes the network and reaps processes
//	inside   starts Kubernetes' programs and plays the scenarios
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// The stages after the first one.
const (
	stageInit   = "init"
	stageInside = "inside"
)

// exitMissing is the exit code for a machine that lacks what the node needs.
const exitMissing = 3

// errMissing is returned after the list of what is missing was printed.
var errMissing = errors.New("this machine cannot run a node yet")

// settings are the command's flags.
type settings struct {
	only       *regexp.Regexp
	deliveries int
	limit      time.Duration
}

func main() {
	// A stage ends with the thread that started it (Pdeathsig), so this one stays.
	runtime.LockOSThread()
	only := flag.String("only", ".", "a regular expression of scenarios; the node and the installations are always started")
	var s settings
	flag.IntVar(&s.deliveries, "deliveries", 1000, "how many deliveries are sent during the rollout")
	flag.DurationVar(&s.limit, "limit", 3*time.Minute, "the time limit of each scenario")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, s, *only)
	switch {
	case err == nil:
	case errors.Is(err, errMissing):
		os.Exit(exitMissing)
	case ctx.Err() != nil:
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\n✗ node: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, only string) (err error) {
	if s.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "node")
	switch dir := filepath.Join(cache, "run"); flag.Arg(0) {
	case stageInit:
		return initialize(dir)
	case stageInside:
		return inside(ctx, dir, s)
	default:
		return outside(ctx, cache, dir, s)
	}
}
