// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/client/informers/externalversions"
	informers "github.com/plumbline-ci/plumbline/pkg/client/informers/externalversions/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
)

// Claims is one informer of RepositoryClaims for all controllers of a process. It watches
// Plumbline's own namespace only: rights to do more are not needed.
type Claims struct {
	namespace string
	once      sync.Once
	factory   externalversions.SharedInformerFactory
}

// NewClaims returns the informer of a namespace; nothing is listed before Start.
func NewClaims(namespace string) *Claims { return &Claims{namespace: namespace} }

// Informer returns the informer, made on the first call with the client in ctx.
func (c *Claims) Informer(ctx context.Context) informers.RepositoryClaimInformer {
	c.once.Do(func() {
		c.factory = externalversions.NewSharedInformerFactoryWithOptions(
			plumblineclient.Get(ctx),
			controller.GetResyncPeriod(ctx),
			externalversions.WithNamespace(c.namespace),
		)
	})
	claims := c.factory.Plumbline().V1alpha1().RepositoryClaims()
	claims.Informer() // tells the factory what to start
	return claims
}

// Start runs the informer until ctx is done. It is not waited for: a claim that the cache does not
// know yet is read live.
func (c *Claims) Start(ctx context.Context) {
	c.Informer(ctx)
	c.factory.Start(ctx.Done())
}
