// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/internal/waiting"
)

// logEvery is how often the receiver checks whether it waits for something that it has not logged.
const logEvery = time.Second

// waits knows what the receiver still needs before it can serve.
type waits struct {
	// definitions are kinds that are missing, or older than this binary.
	definitions *waiting.List
	// caches are filled once.
	caches []*watched
	// served stays true through an outage: a 503 with Retry-After is a better answer than none.
	served atomic.Bool
}

func newWaits() *waits {
	silent := func(string) {} // awaitReady logs
	return &waits{definitions: waiting.NewList(silent, "The definitions of Plumbline's kinds: not read yet")}
}

// watched is a cache that has to be filled.
type watched struct {
	what   string
	filled func() bool
	failed atomic.Pointer[error]
}

// watch adds a cache, which has not been started.
func (w *waits) watch(what string, filled func() bool, informers ...cache.SharedInformer) error {
	one := &watched{what: what, filled: filled}
	for _, informer := range informers {
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			one.failed.Store(&err)
			cache.DefaultWatchErrorHandler(ctx, r, err)
		})
		if err != nil {
			return fmt.Errorf("watching %s: %w", what, err)
		}
	}
	w.caches = append(w.caches, one)
	return nil
}

// synced returns a function that reports whether all informers have read what there is.
func synced(informers []cache.SharedInformer) func() bool {
	return func() bool {
		return !slices.ContainsFunc(informers, func(i cache.SharedInformer) bool { return !i.HasSynced() })
	}
}

// watchAll adds the caches of the receiver.
func (c *cluster) watchAll() error {
	settings := "ConfigMap " + c.namespace + "/" + c.configMap
	claims := c.own.Plumbline().V1alpha1().RepositoryClaims().Informer()
	return errors.Join(c.waits.watch(settings, c.configured, c.settings.Core().V1().ConfigMaps().Informer()),
		c.waits.watch("GitEvents", c.counted, c.open), c.waits.watch("RepositoryClaims", claims.HasSynced, claims),
		c.waits.watch("Repositories", c.repositories().HasSynced, c.repositories()))
}

// String returns why the cache is not filled, without the error itself, which has addresses.
func (w *watched) String() string {
	failed := w.failed.Load()
	switch {
	case failed == nil:
		return w.what + ": not read yet"
	case apierrors.IsNotFound(*failed):
		return w.what + ": the API server does not serve them yet"
	case apierrors.IsForbidden(*failed), apierrors.IsUnauthorized(*failed):
		return w.what + ": the receiver may not read them. To fix it: apply the roles and bindings of config/"
	}
	return w.what + ": the API server does not answer"
}

// waitsFor returns what the receiver waits for, a line each, and nothing once it could serve.
func (c *cluster) waitsFor() (lines []string) {
	if c.waits.served.Load() {
		return nil
	}
	lines = c.waits.definitions.Lines()
	for _, one := range c.waits.caches {
		if !one.filled() {
			lines = append(lines, one.String())
		}
	}
	if c.configured() && c.config.Load().Namespaces.Broken != "" {
		lines = append(lines,
			"ConfigMap "+c.namespace+"/"+c.configMap+": serve-namespaces is not valid, and the log says why")
	}
	if !c.copies.Complete() {
		lines = append(lines, "The copies of webhook secrets: the controllers have not made all of them. "+
			"To find out why: kubectl -n "+c.namespace+" logs deployment/"+string(preflight.Controller))
	}
	if len(lines) == 0 {
		c.waits.served.Store(true)
	}
	return lines
}

// awaitReady logs what the receiver waits for, each thing once. When it waits for nothing,
// awaitReady signals that webhooks may be undelivered: this may be the first receiver after a time
// without any.
func (c *cluster) awaitReady(stop <-chan struct{}) {
	list := waiting.NewList(func(line string) { c.logger.Warnw("not ready, waiting: " + line) })
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		lines := c.waitsFor()
		list.Set(lines...)
		if len(lines) == 0 {
			c.logger.Info("the receiver can verify and store deliveries")
			c.undelivered.Ask()
			return
		}
	}
}

// define waits for the definitions of the kinds.
func (c *cluster) define(ctx context.Context, checker *preflight.Checker) {
	_ = c.waits.definitions.ForDefinitions(ctx, checker) // ends with ctx
}
