// SPDX-License-Identifier: Apache-2.0

// Command controller runs Plumbline's reconcilers. Any number of replicas may run: leases divide
// the work, and correctness does not depend on them.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"runtime"

	"go.opentelemetry.io/otel"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/internal/waiting"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
)

// component names the logger, the leases and the metrics' service.
const component = "plumbline-controller"

// version is written to the version label of PipelineRuns; the release build sets it.
var version = "devel"

const (
	// The limits of one client are for 20 events a second at up to 20 calls each. They keep one
	// replica from making bursts that delay others; the API server has its own limits. Leases and
	// bulk work have clients of their own.
	defaultQPS   = 400
	defaultBurst = 800
)

func main() {
	memory.Set(os.Getenv)
	var o options
	o.define(flag.CommandLine)
	cfg := injection.ParseAndGetRESTConfigOrDie() // parses the flags, also -kube-api-qps and -kube-api-burst
	runtime.SetMutexProfileFraction(o.mutexFraction)
	if cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = defaultQPS, defaultBurst
	}
	checker, err := preflight.New(cfg, preflight.Options{
		Component: preflight.Controller, Namespace: system.Namespace(), AppSecret: o.appSecret, ConfigMap: o.configMap,
		Coexist: o.coexist,
	})
	if err != nil {
		log.Fatalf("Preparing the preflight: %v", err)
	}
	ctx := signals.NewContext()
	if o.preflight {
		os.Exit(checker.Report(ctx, os.Stdout))
	}
	countCalls(cfg) // before anything copies the configuration
	waits := waiting.NewList(func(line string) { log.Printf("Waiting: %s", line) }, "The installation is being checked")
	go serveProbes(injection.AddReadiness(ctx, readiness(ctx, waits)), o.healthPort)
	if err := await(ctx, checker, waits); err != nil {
		log.Fatalf("Not starting: %v", err)
	}
	go warnOfInstallation(ctx, checker)
	o.run(ctx, cfg)
}

// run runs the reconcilers until ctx ends, and then releases the leases.
func (o *options) run(ctx context.Context, cfg *rest.Config) {
	ctx, end := context.WithCancel(ctx)
	election, err := newElection(ctx, cfg)
	if err != nil {
		log.Fatalf("Preparing the leader election: %v", err)
	}
	// sharedmain would run the election with the client that the reconcilers use, and serve the
	// probes on a fixed port.
	ctx = sharedmain.WithHealthProbesDisabled(sharedmain.WithHADisabled(leaderelection.With(ctx, election)))
	sharedmain.MainWithConfig(ctx, component, cfg, o.controllers()...)
	end() // MainWithConfig may have returned before ctx ended
	election.Wait()
}

// countCalls counts the calls of all clients that are made of a configuration.
func countCalls(cfg *rest.Config) {
	if err := apicalls.Count(cfg, otel.GetMeterProvider()); err != nil {
		log.Printf("Some metrics will be missing: %v", err)
	}
}

// serveProbes replaces sharedmain's probes, whose port is fixed.
func serveProbes(ctx context.Context, port int) {
	if err := injection.ServeHealthProbes(ctx, port); err != nil {
		log.Fatalf("Serving the probes on port %d: %v", port, err)
	}
}
