// SPDX-License-Identifier: Apache-2.0

// Command controller runs Plumbline's reconcilers. Any number of replicas may run: leases divide
// the work, and correctness does not depend on them.
package main

import (
	"cmp"
	"context"
	"flag"
	"log"
	"os"
	"runtime"
	"time"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	knativeelection "knative.dev/pkg/leaderelection"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/cancel"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/applog"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/hooklog"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/repository"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// component names the logger, the leases and the metrics' service.
const component = "plumbline-controller"

// version is written to the version label of PipelineRuns; the release build sets it.
var version = "devel"

// Client limits. The API server's own priority and fairness is the real brake, and its 429 is a
// wait as any other; these keep one replica from being a burst that others feel. Leases have a
// client of their own so that a busy queue can never cost a lease, and so has what is done in bulk.
const (
	// defaultQPS is for 20 events a second at up to 20 calls each.
	defaultQPS   = 400
	defaultBurst = 800
	// Renewals are 17 calls a second as installed; all 50 leases are got, or given back, with two
	// calls each at once.
	leaseQPS   = 40
	leaseBurst = 120
)

// defaultWorkers is for 20 events a second whose Git service takes 150 ms for an answer: some 10
// calls each are 30 visits at once, which is what an installation gets. A worker that waits is a
// goroutine; the memory for large events is a room that all share (pkg/flowcontrol/memory).
const defaultWorkers = 64

// settingsWithin is for how long the settings of the leader election are asked for.
const settingsWithin = 10 * time.Second

// limitCalls sets the limits of calls to the API server unless flags did.
func limitCalls(cfg *rest.Config) {
	if cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = defaultQPS, defaultBurst
	}
}

func main() {
	memory.Set(os.Getenv)
	workers := flag.Int(
		"workers",
		defaultWorkers,
		"events reconciled at once; the Git services of one namespace get at most a quarter of them",
	)
	coexist := flag.Bool("coexist-with-pac", false, "start although Pipelines-as-Code runs in this cluster")
	secret := flag.String(
		"github-app-secret",
		"plumbline-github-app",
		"name of the Secret with the GitHub App's credentials",
	)
	global := flag.String(
		"global-repository",
		"pipelines-as-code",
		"name of the Repository in Plumbline's namespace whose settings complete those of all others",
	)
	operatorRetry := flag.Duration(
		"operator-retry",
		fault.OperatorRetry,
		"how long what an operator has to mend waits before it is tried again",
	)
	look := flag.Duration("credential-look", credentials.Look, "how often the Secrets are read that events wait for")
	closeWindow := flag.Duration(
		"close-window",
		cancel.Window,
		"how long the event of a closed pull request stays open for older ones that are delivered late",
	)
	lateReports := flag.Duration(
		"late-reports",
		report.LateReports,
		"how long after a takeover another controller's report may still arrive at the Git service",
	)
	check := flag.Bool(
		"preflight",
		false,
		"print what is wrong with the installation and how to mend it, and end; the exit code is 1 when there is anything",
	)
	probes := flag.Int("health-port", injection.HealthCheckDefaultPort, "port of /health and /readiness")
	contention := flag.Int(
		"mutex-profile-fraction",
		0,
		"one of so many waits for a lock is kept for /debug/pprof/mutex, which the key runtime-profiling of the ConfigMap opens; 0 is none",
	)
	cfg := injection.ParseAndGetRESTConfigOrDie() // parses the flags, -kube-api-qps and -kube-api-burst among them
	runtime.SetMutexProfileFraction(*contention)
	limitCalls(cfg)
	checker, err := preflight.New(cfg, preflight.Options{
		Component: preflight.Controller, Namespace: system.Namespace(), AppSecret: *secret, Coexist: *coexist,
	})
	if err != nil {
		log.Fatalf("Preparing the preflight: %v", err)
	}
	ctx := signals.NewContext()
	if *check {
		os.Exit(reportInstallation(ctx, checker))
	}
	countCalls(cfg) // before anything copies the configuration
	if err := startBeside(ctx, checker); err != nil {
		log.Fatalf("Not starting: %v", err)
	}
	go warnOfInstallation(ctx, checker)
	ctx, end := context.WithCancel(ctx)
	election, err := newElection(ctx, cfg)
	if err != nil {
		log.Fatalf("Preparing the leader election: %v", err)
	}
	// sharedmain would hold the election on the client that the reconcilers use, and serve the
	// probes on a fixed port.
	ctx = sharedmain.WithHealthProbesDisabled(sharedmain.WithHADisabled(leaderelection.With(ctx, election)))
	go serveProbes(ctx, *probes)
	events, claims, runs := gitevents.New(
		system.Namespace(),
	), claim.NewClaims(
		system.Namespace(),
	), pipelineruns.NewRuns(
		system.Namespace(),
	)
	onGitHub, onGitLab := github.New(
		github.Options{UserAgent: "plumbline/" + version},
	), gitlab.New(
		gitlab.Options{UserAgent: "plumbline/" + version},
	)
	sharedmain.MainWithConfig(
		ctx,
		component,
		cfg,
		gitevent.NewController(clients.Options{
			Namespace:        system.Namespace(),
			Version:          version,
			Remote:           web.New(web.Options{UserAgent: "plumbline/" + version}),
			Providers:        byName(onGitHub, onGitLab),
			AppSecret:        *secret,
			GlobalRepository: *global,
			Workers:          *workers,
			Identity:         system.PodName() + "-" + string(uuid.NewUUID()),
			Times: clients.Times{
				OperatorRetry:  *operatorRetry,
				CredentialLook: *look,
				LateReports:    *lateReports,
				CloseWindow:    *closeWindow,
			},
		}, events, claims, runs),
		inBulk(func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
			return repository.NewController(repository.Options{
				OpenEvents:       events.Of,
				EventInformer:    events.Informer(ctx).Informer(),
				Claims:           claims,
				Runs:             runs.Informer(ctx).GetIndexer(),
				GlobalRepository: *global,
			})(ctx, cmw)
		}),
		inBulk(sweeping(*secret, *global, events, byName(onGitHub, onGitLab))),
		inBulk(
			webhooksecret.NewController(
				webhooksecret.Options{Namespace: system.Namespace(), AppSecret: *secret, GlobalRepository: *global},
			),
		),
		applog.NewController(
			applog.Options{Namespace: system.Namespace(), AppSecret: *secret, GitHub: onGitHub, Claims: claims},
		),
		inBulk(
			hooklog.NewController(
				hooklog.Options{Namespace: system.Namespace(), GlobalRepository: *global, Service: onGitLab, Claims: claims},
			),
		),
	)
	end() // if it was not told to
	election.Wait()
}

// countCalls counts the calls of all clients that are made of a configuration.
func countCalls(cfg *rest.Config) {
	if err := apicalls.Count(cfg, otel.GetMeterProvider()); err != nil {
		log.Printf("Some metrics will be missing: %v", err)
	}
}

// serveProbes stands in for sharedmain's probes, whose port is fixed.
func serveProbes(ctx context.Context, port int) {
	if err := injection.ServeHealthProbes(ctx, port); err != nil {
		log.Fatalf("Serving the probes on port %d: %v", port, err)
	}
}

func byName(providers ...provider.Provider) map[string]provider.Provider {
	m := make(map[string]provider.Provider, len(providers))
	for _, p := range providers {
		m[p.Name] = p
	}
	return m
}

// newElection reads knative's configuration of the election, which has a client of its own.
func newElection(ctx context.Context, cfg *rest.Config) (*leaderelection.Election, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.Burst = leaseQPS, leaseBurst
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	cm, err := settingsOfElection(ctx, client)
	if err != nil {
		return nil, err
	}
	read, err := knativeelection.NewConfigFromConfigMap(cm)
	if err != nil {
		return nil, err
	}
	config := read.GetComponentConfig(component)
	if config.Identity, err = knativeelection.UniqueID(); err != nil {
		return nil, err
	}
	return leaderelection.New(ctx.Done(), client, system.Namespace(), config)
}

// settingsOfElection reads the ConfigMap of the leader election, nil if there is none. An API
// server that has just begun refuses everybody until it has read the roles.
func settingsOfElection(ctx context.Context, client kubernetes.Interface) (cm *corev1.ConfigMap, err error) {
	waited := wait.PollUntilContextTimeout(
		ctx,
		time.Second,
		settingsWithin,
		true,
		func(ctx context.Context) (bool, error) {
			cm, err = client.CoreV1().
				ConfigMaps(system.Namespace()).
				Get(ctx, knativeelection.ConfigMapName(), metav1.GetOptions{})
			return err == nil || fault.Gone(err), nil
		},
	)
	switch {
	case waited != nil:
		return nil, cmp.Or(err, waited)
	case err != nil:
		return nil, nil
	}
	return cm, nil
}
