// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/internal/waiting"
)

// retryEvery is how often waitForPaC reads an API server that does not respond.
const retryEvery = 2 * time.Second

// await returns when the controllers can work. The error is that of ctx.
func await(ctx context.Context, checker *preflight.Checker, waits *waiting.List) error {
	if err := waitForPaC(ctx, checker, waits); err != nil {
		return err
	}
	return waits.ForDefinitions(ctx, checker)
}

// waitForPaC waits while Pipelines-as-Code runs in this cluster, and not on purpose. It also waits
// while the API server does not respond: an outage is no reason to start next to it.
func waitForPaC(ctx context.Context, checker *preflight.Checker, waits *waiting.List) error {
	logged := ""
	return wait.PollUntilContextCancel(ctx, retryEvery, true, func(ctx context.Context) (bool, error) {
		findings, err := checker.RunningPaC(ctx)
		var lines []string
		for _, f := range findings {
			if f.Fatal {
				lines = append(lines, f.String())
			}
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.Printf("Looking for Pipelines-as-Code: %v", err)
		}
		if err != nil {
			lines = append(lines, "The API server does not answer")
		}
		if len(lines) > 0 { // without any, the wait goes on with the definitions
			waits.Set(lines...)
		}
		return len(lines) == 0, nil
	})
}

// readiness answers a probe: not ready as long as the controllers wait, and after SIGTERM.
func readiness(ctx context.Context, waits *waiting.List) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		lines := waits.Lines()
		if ctx.Err() != nil {
			lines = []string{"The process ends"}
		}
		if len(lines) > 0 {
			http.Error(w, "not ready:\n"+strings.Join(lines, "\n"), http.StatusServiceUnavailable)
		}
	}
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
