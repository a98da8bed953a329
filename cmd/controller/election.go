// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	knativeelection "knative.dev/pkg/leaderelection"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
)

const (
	// The leases have a client of their own, so that a busy queue never costs a lease. By default
	// renewals take 17 calls a second, and taking or releasing all 50 leases two calls each.
	leaseQPS   = 40
	leaseBurst = 120
	// settingsWithin is how long newElection tries to read the settings of the election.
	settingsWithin = 10 * time.Second
)

// newElection reads knative's configuration of the leader election.
func newElection(ctx context.Context, cfg *rest.Config) (*leaderelection.Election, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.Burst = leaseQPS, leaseBurst
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	cm, err := electionSettings(ctx, client)
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

// electionSettings reads the ConfigMap of the leader election; nil if there is none. It retries: an
// API server that has just started refuses all clients until it has read the roles.
func electionSettings(ctx context.Context, client kubernetes.Interface) (cm *corev1.ConfigMap, err error) {
	read := func(ctx context.Context) (bool, error) {
		cm, err = client.CoreV1().ConfigMaps(system.Namespace()).
			Get(ctx, knativeelection.ConfigMapName(), metav1.GetOptions{})
		return err == nil || fault.Gone(err), nil
	}
	waited := wait.PollUntilContextTimeout(ctx, time.Second, settingsWithin, true, read)
	switch {
	case waited != nil:
		return nil, cmp.Or(err, waited)
	case err != nil:
		return nil, nil
	}
	return cm, nil
}
