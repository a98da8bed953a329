// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/system"

	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/sweep/orphans"
)

// newCloser returns a closer of orphaned checks, with the credentials that events have.
func newCloser(ctx context.Context, secret, global string, providers map[string]provider.Provider) *orphans.Closer {
	client, clock := plumblineclient.Get(ctx), clock.RealClock{}
	own, repositories := client.PlumblineV1alpha1(), client.PipelinesascodeV1alpha1()
	return &orphans.Closer{
		Events:       own.GitEvents(system.Namespace()),
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
			Kube:             kubeclient.Get(ctx).CoreV1(),
			Cache:            repositoryinformer.Get(ctx).Lister(),
			Repositories:     repositories,
			Clock:            clock,
		}, nil)),
	}
}
