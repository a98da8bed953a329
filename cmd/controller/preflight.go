// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
)

// retryEvery is how often waitForPaC reads an API server that does not respond.
const retryEvery = 2 * time.Second

// waitForPaC returns an error if Pipelines-as-Code certainly runs in this cluster. It waits while
// the API server does not respond: an outage is a reason neither to start next to it nor to exit.
func waitForPaC(ctx context.Context, checker *preflight.Checker) error {
	logged := ""
	return wait.PollUntilContextCancel(ctx, retryEvery, true, func(ctx context.Context) (bool, error) {
		findings, err := checker.RunningPaC(ctx)
		for _, f := range findings {
			if f.Fatal {
				return false, fmt.Errorf("%s", f)
			}
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.Printf("Waiting: %v", err)
		}
		return err == nil, nil
	})
}

// warnOfInstallation logs each finding once. Plumbline starts anyway: the checks of events say what
// they wait for.
func warnOfInstallation(ctx context.Context, checker *preflight.Checker) {
	logger, _ := logging.NewLoggerFromConfig(&logging.Config{}, component)
	for _, f := range checker.Run(ctx) {
		if ctx.Err() == nil {
			logger.Warnw("the installation: "+f.Object+" "+f.Problem, "remedy", f.Remedy)
		}
	}
}
