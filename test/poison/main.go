// SPDX-License-Identifier: Apache-2.0

// Command poison is the controller with a GitHub that panics about marked commits (B16). The
// product has no such switch.
package main

import (
	"context"
	"flag"
	"log"

	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/repository"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// component is the product's: its ServiceAccount may use these leases only.
const component = "plumbline-controller"

func main() {
	probes := flag.Int("health-port", injection.HealthCheckDefaultPort, "as the product's")
	operatorRetry := flag.Duration("operator-retry", 0, "as the product's")
	lateReports := flag.Duration("late-reports", 0, "as the product's")
	planning := flag.String("panic-planning", "", "the commit that cannot be read without a panic")
	reporting := flag.String("panic-reporting", "", "the commit that cannot be reported on without a panic")
	cfg := injection.ParseAndGetRESTConfigOrDie()
	ctx := sharedmain.WithHealthProbesDisabled(signals.NewContext())
	go func() {
		if err := injection.ServeHealthProbes(ctx, *probes); err != nil {
			log.Fatalf("Serving the probes on port %d: %v", *probes, err)
		}
	}()
	events, claims, runs := gitevents.New(system.Namespace()), claim.NewClaims(system.Namespace()),
		pipelineruns.NewRuns(system.Namespace())
	sharedmain.MainWithConfig(ctx, component, cfg,
		gitevent.NewController(deps.Options{
			Namespace: system.Namespace(), Version: "poison", AppSecret: "plumbline-github-app", Workers: 16,
			Times: deps.Times{OperatorRetry: *operatorRetry, LateReports: *lateReports}, Identity: system.PodName(),
			Remote:    web.New(web.Options{}),
			Providers: map[string]provider.Provider{"github": panicking(github.New(github.Options{}), *planning, *reporting)},
		}, events, claims, runs, nil),
		func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
			shared := repository.Options{OpenEvents: events.Of, EventInformer: events.Informer(ctx).Informer(), Claims: claims,
				Runs: runs.Informer(ctx).GetIndexer()}
			return repository.NewController(shared)(ctx, cmw)
		},
		webhooksecret.NewController(webhooksecret.Options{Namespace: system.Namespace(), AppSecret: "plumbline-github-app"}),
	)
}

// panicking is a provider whose clients panic about two commits.
func panicking(p provider.Provider, planning, reporting string) provider.Provider {
	connect := p.Connect
	p.Connect = func(ctx context.Context, baseURL string, project v1alpha1.Project,
		credentials provider.Credentials) (provider.Client, error) {
		client, err := connect(ctx, baseURL, project, credentials)
		if err != nil {
			return client, err
		}
		client.Source = source{client.Source, planning}
		client.Reporter = reporter{client.Reporter, reporting}
		return client, nil
	}
	return p
}

type source struct {
	provider.Source
	poison string
}

func (s source) Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error) {
	if event.SHA == s.poison {
		panic("poison in a commit")
	}
	return s.Source.Head(ctx, event)
}

type reporter struct {
	provider.Reporter
	poison string
}

func (r reporter) Put(ctx context.Context, head git.Head, id string, check status.Check, sole bool) (string, error) {
	if head.SHA == r.poison {
		panic("poison in a report")
	}
	return r.Reporter.Put(ctx, head, id, check, sole)
}
