// SPDX-License-Identifier: Apache-2.0

// Command receiver receives the deliveries of Git services and answers them when they are durable.
// Any number of replicas may run; there is no lease. Without the API server it starts, is not
// ready, and answers 503.
//
// Environment: SYSTEM_NAMESPACE (required), KUBECONFIG, KUBE_API_QPS, KUBE_API_BURST,
// METRICS_PROMETHEUS_PORT and METRICS_PROMETHEUS_HOST (knative's names; they override
// -metrics-port), TRACING_PROTOCOL, TRACING_ENDPOINT and TRACING_SAMPLING_RATE (defaults of the
// flags), PROFILING_PORT.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
)

// component is the name of the logger, and of the service in metrics.
const component = "plumbline-receiver"

// The limits of the client. A delivery of GitHub takes one call, two in the first day after a
// start, and one of GitLab takes three: that is 65 to 200 deliveries a second. The API server's
// priority and fairness is the effective limit.
const (
	defaultQPS   = 200
	defaultBurst = 400
)

// settings are the flags.
type settings struct {
	host        string
	port        int
	metricsPort int
	drainWait   time.Duration
	apiWait     time.Duration
	appSecret   string
	configMap   string
	global      string
	preflight   bool
	profiling   bool
	// contention is runtime.SetMutexProfileFraction's argument.
	contention int
	// tracing is knative's tracing configuration by key.
	tracing map[string]*string
}

func main() {
	memory.Set(os.Getenv)
	s, cfg := parse()
	logger := newLogger()
	ctx := signals.NewContext()
	if s.preflight {
		os.Exit(reportInstallation(ctx, logger, s, cfg))
	}
	err := run(ctx, logger, s, cfg)
	_ = logger.Sync() // standard error cannot be synced everywhere
	if err != nil {
		logger.Errorw("receiver ended", zap.Error(err))
		os.Exit(1)
	}
}

// parse reads the flags, -kubeconfig, -server, -kube-api-qps and -kube-api-burst among them.
func parse() (settings, *rest.Config) {
	var s settings
	flag.StringVar(&s.host, "host", "", "address to listen on; empty is all addresses")
	flag.IntVar(&s.port, "port", 8080, "port of deliveries, /live and /ready; 0 is any free port")
	flag.IntVar(&s.metricsPort, "metrics-port", 9090, "port of /metrics; METRICS_PROMETHEUS_PORT overrides it")
	flag.DurationVar(&s.drainWait, "drain-wait", receiver.DrainWait, "how long deliveries are served after SIGTERM")
	flag.DurationVar(
		&s.apiWait, "api-wait", recorder.DefaultCallTimeout,
		"how long each call of a delivery to the API server may take; the time for a delivery is in proportion to it, at most 8 s by default: GitHub gives up after 10 s",
	)
	flag.StringVar(
		&s.appSecret, "github-app-secret", "plumbline-github-app",
		"name of the Secret with the GitHub App's credentials, the same as for the controllers: they copy the webhook secret from it",
	)
	flag.StringVar(&s.configMap, "config-map", config.Name, "name of the ConfigMap with Plumbline's settings")
	flag.StringVar(&s.global, "global-repository", "pipelines-as-code",
		"name of the Repository in Plumbline's namespace whose settings complete those of all others")
	flag.BoolVar(&s.preflight, "preflight", false,
		"print what is wrong with the installation and how to fix it, and exit; the exit code is 1 if anything is wrong")
	flag.BoolVar(&s.profiling, "profiling", false,
		"serve /debug/pprof on port 8008, or PROFILING_PORT, without authentication")
	flag.IntVar(&s.contention, "mutex-profile-fraction", 0,
		"one of so many waits for a lock is recorded for /debug/pprof/mutex; 0 is none")
	s.tracing = traceFlags()
	cfg := injection.ParseAndGetRESTConfigOrDie()
	if cfg.QPS == 0 {
		cfg.QPS = defaultQPS
	}
	if cfg.Burst == 0 {
		cfg.Burst = defaultBurst
	}
	cfg.UserAgent = component
	return s, cfg
}

// newLogger uses knative's defaults. It does not read the ConfigMap config-logging, so it needs no
// API server.
func newLogger() *zap.SugaredLogger {
	// No stack traces: an outage of the API server is an error of many deliveries, always at the
	// same place.
	logger, _ := logging.NewLoggerFromConfig(&logging.Config{}, component, zap.AddStacktrace(zap.DPanicLevel))
	return logger
}

func newPreflight(s settings, cfg *rest.Config) (*preflight.Checker, error) {
	return preflight.New(
		cfg,
		preflight.Options{
			Component: preflight.Receiver, Namespace: system.Namespace(), AppSecret: s.appSecret, ConfigMap: s.configMap,
		},
	)
}

// reportInstallation prints what is wrong with the installation as far as it concerns the receiver.
// It returns the exit code.
func reportInstallation(ctx context.Context, logger *zap.SugaredLogger, s settings, cfg *rest.Config) int {
	checker, err := newPreflight(s, cfg)
	if err != nil {
		logger.Errorw("preparing the preflight", zap.Error(err))
		return 1
	}
	return checker.Report(ctx, os.Stdout)
}

// run serves until ctx ends and the server is drained.
func run(ctx context.Context, logger *zap.SugaredLogger, s settings, cfg *rest.Config) error {
	meters, err := newMeters(ctx, s)
	if err != nil {
		return err
	}
	flush := newTracer(ctx, logger, s.tracing)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushBudget)
		defer cancel()
		_ = flush(ctx)           // traces are best effort
		_ = meters.Shutdown(ctx) // nothing is exported any more
	}()
	otel.SetMeterProvider(meters)
	counters, err := receiver.NewMetrics(otel.GetMeterProvider())
	if err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	checker, err := newPreflight(s, cfg)
	if err != nil {
		return err
	}
	if err := apicalls.Count(cfg, otel.GetMeterProvider()); err != nil {
		return err
	}
	cluster, err := newCluster(cfg, system.Namespace(), s.configMap, logger)
	if err != nil {
		return err
	}
	if s.profiling {
		defer profile(logger, s.contention)()
	}
	// The caches outlive ctx: deliveries are served from them while draining.
	stop := make(chan struct{})
	defer close(stop)
	if err := cluster.start(stop); err != nil {
		return err
	}
	go cluster.define(ctx, checker)
	options := cluster.options(s)
	options.Providers = []provider.Provider{github.New(github.Options{}), gitlab.New(gitlab.Options{})}
	options.Metrics = counters
	server := receiver.NewServer(receiver.NewHandler(options), counters)
	server.Waits, server.DrainWait, server.Timeout, server.Logger = cluster.waitsFor, s.drainWait, options.Timeout, logger
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port)))
	if err != nil {
		return fmt.Errorf("listening for deliveries: %w", err)
	}
	logger.Infow("serving deliveries", "address", listener.Addr().String())
	return server.Serve(ctx, listener)
}
