// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
)

// askAgain is how soon an API server that did not answer is asked again at the start.
const askAgain = 2 * time.Second

// reportInstallation prints what is wrong with the installation; it returns the exit code.
func reportInstallation(ctx context.Context, checker *preflight.Checker) int {
	findings := checker.Run(ctx)
	if err := preflight.Print(os.Stdout, checker.Namespace, findings); err != nil || len(findings) != 0 {
		return 1
	}
	return 0
}

// startBeside returns an error when Pipelines-as-Code runs in this cluster, for certain. While the
// API server does not say, it waits: an outage is no reason to run beside it, nor to end.
func startBeside(ctx context.Context, checker *preflight.Checker) error {
	said := ""
	return wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
		findings, err := checker.RunningBeside(ctx)
		for _, f := range findings {
			if f.Fatal {
				return false, fmt.Errorf("%s", f)
			}
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			log.Printf("Waiting: %v", err)
		}
		return err == nil, nil
	})
}

// warnOfInstallation logs each finding once. Plumbline runs nevertheless: what it misses it waits
// for, and says so.
func warnOfInstallation(ctx context.Context, checker *preflight.Checker) {
	logger, _ := logging.NewLoggerFromConfig(&logging.Config{}, component)
	for _, f := range checker.Run(ctx) {
		if ctx.Err() == nil {
			logger.Warnw("the installation: "+f.Object+" "+f.Problem, "remedy", f.Remedy)
		}
	}
}
