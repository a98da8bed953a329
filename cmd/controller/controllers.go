// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/applog"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/hooklog"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/repository"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/sweep"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/runtime/openshift"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// controllers returns the constructors of all reconcilers.
func (o *options) controllers() []injection.ControllerConstructor {
	namespace, userAgent := system.Namespace(), "plumbline/"+version
	events, claims, runs := gitevents.New(namespace), claim.NewClaims(namespace), pipelineruns.NewRuns(namespace)
	onGitHub := github.New(github.Options{UserAgent: userAgent})
	onGitLab := gitlab.New(gitlab.Options{UserAgent: userAgent})
	console := &openshift.Console{}
	providers := map[string]provider.Provider{onGitHub.Name: onGitHub, onGitLab.Name: onGitLab}
	return o.configured([]injection.ControllerConstructor{
		gitevent.NewController(deps.Options{
			Namespace:        namespace,
			Version:          version,
			Remote:           web.New(web.Options{UserAgent: userAgent}),
			Providers:        providers,
			AppSecret:        o.appSecret,
			GlobalRepository: o.global,
			Workers:          o.workers,
			Identity:         system.PodName() + "-" + string(uuid.NewUUID()),
			Times:            o.times,
		}, events, claims, runs, console),
		inBulk(func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
			return repository.NewController(repository.Options{
				OpenEvents:       events.Of,
				EventInformer:    events.Informer(ctx).Informer(),
				Claims:           claims,
				Runs:             runs.Informer(ctx).GetIndexer(),
				GlobalRepository: o.global,
			})(ctx, cmw)
		}),
		inBulk(func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
			closer := newCloser(ctx, o.appSecret, o.global, providers)
			return sweep.NewController(sweep.Options{
				Namespace: namespace, Events: events, Closer: closer, OpenShift: console,
			})(ctx, cmw)
		}),
		inBulk(webhooksecret.NewController(webhooksecret.Options{
			Namespace:        namespace,
			AppSecret:        o.appSecret,
			GlobalRepository: o.global,
		})),
		applog.NewController(applog.Options{
			Namespace: namespace,
			AppSecret: o.appSecret,
			GitHub:    onGitHub,
			Claims:    claims,
		}),
		inBulk(hooklog.NewController(hooklog.Options{
			Namespace:        namespace,
			GlobalRepository: o.global,
			Service:          onGitLab,
			Claims:           claims,
		})),
	})
}

// configured has all controllers read the ConfigMap that the flag names.
func (o *options) configured(all []injection.ControllerConstructor) []injection.ControllerConstructor {
	for i, construct := range all {
		all[i] = func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
			return construct(ctx, config.Watching(cmw, o.configMap))
		}
	}
	return all
}

// inBulk gives a controller clients of its own with the same limits. So an event does not wait
// until 5,000 Repositories are claimed or the sweep has ended.
func inBulk(constructor injection.ControllerConstructor) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		cfg := injection.GetConfig(ctx) // all clients that are made of it count their calls
		ctx = context.WithValue(ctx, kubeclient.Key{}, kubernetes.NewForConfigOrDie(cfg))
		ctx = context.WithValue(ctx, plumblineclient.Key{}, versioned.NewForConfigOrDie(cfg))
		return constructor(ctx, cmw)
	}
}
