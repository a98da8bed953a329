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

// Claims is the one informer of RepositoryClaims that all controllers of a process share. It
// watches only Plumbline's own namespace, so that no further permissions are needed.
type Claims struct {
	namespace string
	once      sync.Once
	factory   externalversions.SharedInformerFactory
}

// NewClaims returns the informer for a namespace. It lists nothing before Start.
func NewClaims(namespace string) *Claims { return &Claims{namespace: namespace} }

// Informer returns the informer. The first call creates it with the client in ctx.
func (c *Claims) Informer(ctx context.Context) informers.RepositoryClaimInformer {
	c.once.Do(func() {
		c.factory = externalversions.NewSharedInformerFactoryWithOptions(plumblineclient.Get(ctx),
			controller.GetResyncPeriod(ctx), externalversions.WithNamespace(c.namespace))
	})
	claims := c.factory.Plumbline().V1alpha1().RepositoryClaims()
	claims.Informer() // registers the informer with the factory
	return claims
}

// Start runs the informer until ctx is done. Nothing waits for its cache: a claim that is not
// cached yet is read live.
func (c *Claims) Start(ctx context.Context) {
	c.Informer(ctx)
	c.factory.Start(ctx.Done())
}
