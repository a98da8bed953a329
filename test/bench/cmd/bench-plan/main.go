// SPDX-License-Identifier: Apache-2.0

// Command bench-plan prints what an event costs on a real Kubernetes and a real Tekton: how long it takes from the accepted
// delivery to the recorded plan, to the last PipelineRun and to the end, which calls are made, and how large the
// GitEvent becomes, for several numbers of PipelineRuns in .tekton. It asserts no speed; the machine decides that.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	list := flag.String("runs", "1,10,100,200", "numbers of PipelineRuns in .tekton, one event each")
	var slow delays
	flag.DurationVar(&slow.git, "git-delay", 0, "how long the Git service takes for each answer; 200ms is like github.com")
	flag.DurationVar(&slow.create, "create-delay", 0, "how much longer the API server takes for each PipelineRun, as with policies that look at it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *list, slow); err != nil {
		fmt.Fprintf(os.Stderr, "\n✗ bench-plan: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list string, slow delays) error {
	sizes, err := numbers(list)
	if err != nil {
		return err
	}
	command := installation.Play{Name: "bench-plan", Progress: os.Stdout}
	return command.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) error {
		s, err := open(ctx, c, built, slow)
		defer s.close()
		var samples []sample
		for _, runs := range sizes {
			if err != nil {
				break
			}
			var next sample
			if next, err = s.measure(ctx, runs); err == nil {
				samples = append(samples, next)
			}
		}
		print(os.Stdout, samples)
		return err
	})
}

// numbers reads a list like "1,10".
func numbers(list string) ([]int, error) {
	var out []int
	for _, field := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-runs=%s: %q is not a number of PipelineRuns; write numbers above 0 with commas between them", list, field)
		}
		out = append(out, n)
	}
	return out, nil
}
