// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/kubernetes"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
)

// inBulk gives a controller clients of its own, which have the same limits: an event does not wait
// until 5,000 Repositories are claimed or the sweep is through.
func inBulk(constructor injection.ControllerConstructor) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		cfg := injection.GetConfig(ctx) // each set of clients made of it counts its own calls
		ctx = context.WithValue(ctx, kubeclient.Key{}, kubernetes.NewForConfigOrDie(cfg))
		ctx = context.WithValue(ctx, plumblineclient.Key{}, versioned.NewForConfigOrDie(cfg))
		return constructor(ctx, cmw)
	}
}
