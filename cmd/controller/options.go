// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"

	"knative.dev/pkg/injection"

	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/cancel"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
)

// defaultWorkers is for 20 events a second whose Git service takes 150 ms for a response: some 10
// calls each are 30 calls at once. A worker that waits costs a goroutine; all share the memory for
// large events (pkg/flowcontrol/memory).
const defaultWorkers = 64

// options are what the flags say.
type options struct {
	workers, healthPort, mutexFraction int
	coexist, preflight                 bool
	appSecret, configMap, global       string
	times                              deps.Times
}

// define defines the flags.
func (o *options) define(f *flag.FlagSet) {
	f.IntVar(&o.workers, "workers", defaultWorkers,
		"events reconciled at once; the Git services of one namespace get at most a quarter of them")
	f.BoolVar(&o.coexist, "coexist-with-pac", false, "start although Pipelines-as-Code runs in this cluster")
	f.StringVar(&o.appSecret, "github-app-secret", "plumbline-github-app",
		"name of the Secret with the GitHub App's credentials")
	f.StringVar(&o.configMap, "config-map", config.Name, "name of the ConfigMap with Plumbline's settings")
	f.StringVar(&o.global, "global-repository", "pipelines-as-code",
		"name of the Repository in Plumbline's namespace whose settings complete those of all others")
	f.DurationVar(&o.times.OperatorRetry, "operator-retry", fault.OperatorRetry,
		"how long to wait before retrying what an operator has to fix")
	f.DurationVar(&o.times.CredentialLook, "credential-look", credentials.Look,
		"how often to read the Secrets that events wait for")
	f.DurationVar(&o.times.CloseWindow, "close-window", cancel.Window,
		"how long the event of a closed pull request stays open for older ones that are delivered late")
	f.DurationVar(&o.times.LateReports, "late-reports", report.LateReports,
		"how long after a takeover another controller's report may still arrive at the Git service")
	f.BoolVar(&o.preflight, "preflight", false,
		"print the problems of the installation and how to fix them, and exit; the exit code is 1 if there are any")
	f.IntVar(&o.healthPort, "health-port", injection.HealthCheckDefaultPort, "port of /health and /readiness")
	f.IntVar(
		&o.mutexFraction, "mutex-profile-fraction", 0,
		"one in so many waits for a lock is recorded for /debug/pprof/mutex, which the key runtime-profiling of the ConfigMap opens; 0 records none",
	)
}
