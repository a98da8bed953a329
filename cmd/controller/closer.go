// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/system"

	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/sweep"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/sweep/orphans"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// newCloser closes checks with the credentials that events have.
func newCloser(ctx context.Context, secret, global string, providers map[string]provider.Provider) *orphans.Closer {
	client, clock := plumblineclient.Get(ctx), clock.RealClock{}
	own, repositories := client.PlumblineV1alpha1(), client.PipelinesascodeV1alpha1()
	return &orphans.Closer{
		Events: own.GitEvents(
			system.Namespace(),
		),
		Claims:       own.RepositoryClaims(system.Namespace()),
		Repositories: repositories,
		Runs: metadata.NewForConfigOrDie(injection.GetConfig(ctx)).
			Resource(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns")),
		Secrets:   kubeclient.Get(ctx).CoreV1(),
		Providers: providers,
		Clock:     clock,
		Credentials: credentials.New(orphans.OneByOne(credentials.Options{
			Namespace:        system.Namespace(),
			AppSecret:        secret,
			GlobalRepository: global,
			Providers:        providers,
			Kube: kubeclient.Get(ctx).
				CoreV1(),
			Cache:        repositoryinformer.Get(ctx).Lister(),
			Repositories: repositories,
			Clock:        clock,
		}, nil)),
	}
}

// sweeping is the sweep with a closer.
func sweeping(
	secret, global string,
	events *gitevents.Watch,
	providers map[string]provider.Provider,
) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		return sweep.NewController(
			sweep.Options{Namespace: system.Namespace(), Events: events, Closer: newCloser(ctx, secret, global, providers)},
		)(
			ctx,
			cmw,
		)
	}
}
