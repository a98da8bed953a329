// SPDX-License-Identifier: Apache-2.0

// Command plumb answers from a working tree what Plumbline would do. Installed as kubectl-plumb it
// is kubectl plumb.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/command"
)

// version is written to the version label of PipelineRuns; the release build sets it.
var version = "devel"

func main() {
	os.Exit(run())
}

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "plumb: the current directory cannot be read: %v\n", err)
		return 2
	}
	return command.Run(ctx,
		command.Process{Args: os.Args, Dir: dir, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Version: version})
}
