// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/forward"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

// baseURL returns the configured URL of a provider's service. It is empty until the ConfigMap was
// read: before that, the default could be the wrong service.
func (c *cluster) baseURL(name string) string {
	if name != github.Name || !c.configured() {
		return ""
	}
	return c.config.Load().GitHubURL
}

// options returns the options of the handler that need the cluster.
func (c *cluster) options(s settings) receiver.Options {
	plumbline, timeout := c.client.PlumblineV1alpha1(), recorder.CallTimeout(s.apiWait)
	indexer := repositories.Repositories(c.repositories().GetIndexer(), c.config)
	lister := repositories.Lister(c.repositories().GetIndexer(), c.config)
	cached := receiver.CachedView(
		c.own.Plumbline().V1alpha1().RepositoryClaims().Lister().RepositoryClaims(c.namespace).Get,
		func(namespace, name string) (*pacv1alpha1.Repository, error) {
			return lister.Repositories(namespace).Get(name)
		})
	served := func(client versioned.Interface) receiver.View {
		live := receiver.LiveView(client, c.namespace, timeout)
		live.Repository = repositories.Reader(live.Repository, c.config)
		return live
	}
	unverified := served(c.unverified)
	return receiver.Options{
		BaseURL: c.baseURL,
		Secret:  secrets.AppSecret{Copies: c.copies, Namespace: c.namespace, Name: s.appSecret},
		Lookup: receiver.Lookup{
			Cached: cached, Live: served(c.client), Unverified: unverified,
			Neighbours: receiver.NeighboursIn(indexer),
			Named:      receiver.NamedIn(indexer),
			CannotClaim: func(canonical, namespace string) bool {
				return c.config.Load().Owners.Bar(canonical, namespace)
			},
		},
		Services: receiver.Services{Global: receiver.GlobalOf(cached, unverified, c.namespace, s.global), Copies: c.copies},
		Recorder: &recorder.Recorder{
			Namespace:  c.namespace,
			Clock:      clock.RealClock{},
			Quota:      c.budget,
			Retention:  func() time.Duration { return c.config.Load().SettledRetention },
			Events:     plumbline.GitEvents(c.namespace),
			Payloads:   blob.Payloads(plumbline, c.namespace),
			Tombstones: plumbline.TombstonePages(c.namespace),
			Timeout:    timeout,
		},
		Event: func(ctx context.Context, name string) (*v1alpha1.GitEvent, error) {
			ctx, cancel := timeout.Context(ctx)
			defer cancel()
			return plumbline.GitEvents(c.namespace).Get(ctx, name, metav1.GetOptions{})
		},
		PipelinesAsCode: c.pipelinesAsCode(),
		Undelivered:     c.undelivered.Ask,
		Logger:          c.logger,
		Clock:           clock.RealClock{},
		Timeout:         timeout,
	}
}

// pipelinesAsCode returns the Pipelines-as-Code that serves the other namespaces. Nothing is
// forwarded to it before the receiver has read which namespaces and claims there are.
func (c *cluster) pipelinesAsCode() receiver.PipelinesAsCode {
	return receiver.PipelinesAsCode{
		Forwarder: forward.New(func() string {
			if !c.waits.served.Load() {
				return ""
			}
			return c.config.Load().PipelinesAsCode.URL
		}),
		Runs:         func() bool { return c.config.Load().PipelinesAsCode.Runs() },
		Serves:       func(namespace string) bool { return c.config.Load().Namespaces.Serve(namespace) },
		Repositories: c.repositories().GetIndexer(),
	}
}
