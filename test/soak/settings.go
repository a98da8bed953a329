// SPDX-License-Identifier: Apache-2.0

// Package soak restarts receivers one after the other, as rolling updates do, while a client
// outside sends deliveries through a balancer that hears late of endpoints that are gone, and
// counts what the client sees.
package soak

import (
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// receiverDeployment is the Deployment in config/ whose probes and waits are used.
const receiverDeployment = "plumbline-receiver"

// Settings of a soak.
type Settings struct {
	// Duration is how long deliveries are sent.
	Duration time.Duration
	// Rate is deliveries a second, at a constant pace whatever the answers take.
	Rate int
	// Replicas are ready at any time; RestartEvery replaces the oldest: a new one first, as
	// maxUnavailable 0 does.
	Replicas     int
	RestartEvery time.Duration
	// CacheFill is how long the API server takes to answer the list a new receiver waits for: a
	// large cluster's.
	CacheFill time.Duration
	// Latency is the way from the client to the Service; the answer takes as long.
	Latency time.Duration
	// Unlisting is when the last kube-proxy hears that an endpoint is gone. The first one hears of
	// a new endpoint at once.
	Unlisting time.Duration
	// Idle is how long the client's proxy keeps a connection that it does not use.
	Idle time.Duration
	// Pod is what kubelet does.
	Pod Pod
	// IgnoreReadiness lists an endpoint when its process runs, as a Deployment without a readiness
	// probe does.
	IgnoreReadiness bool
	// StopAtFailure ends the soak with the first delivery that fails other than Slow.
	StopAtFailure bool
}

// Pod is how kubelet treats a receiver, by config/600-deployments.yaml.
type Pod struct {
	ProbeEvery, ProbeTimeout time.Duration
	ProbeFailures            int
	// PreStop passes between the deletion of a pod and SIGTERM; DrainWait is the receiver's flag;
	// Grace is for both and the end of what is in flight, then comes SIGKILL.
	PreStop, DrainWait, Grace time.Duration
}

// Shipped are the standard settings: 20 deliveries a second, a restart every 20 s, and kubelet's
// part as config/ has it.
func Shipped() (Settings, error) {
	deployment, err := installation.Deployment(receiverDeployment)
	if err != nil {
		return Settings{}, err
	}
	pod, err := podOf(deployment)
	return Settings{
		Duration: 30 * time.Minute, Rate: 20, Replicas: 3, RestartEvery: 20 * time.Second, CacheFill: 2 * time.Second,
		Latency: 50 * time.Millisecond, Unlisting: 5 * time.Second, Idle: 10 * time.Second, Pod: pod,
	}, err
}

// Short are Shipped with shorter waits in the same order (Unlisting < PreStop, Idle < DrainWait),
// for go test. The readiness probe stays as it is shipped.
func Short() (Settings, error) {
	s, err := Shipped()
	s.Duration, s.RestartEvery, s.CacheFill = 45*time.Second, 6*time.Second, time.Second
	s.Unlisting, s.Idle = 2*time.Second, 2*time.Second
	s.Pod.PreStop, s.Pod.DrainWait = 3*time.Second, 3*time.Second
	return s, err
}

func podOf(deployment *appsv1.Deployment) (Pod, error) {
	spec := deployment.Spec.Template.Spec
	container := spec.Containers[0]
	ready, lifecycle := container.ReadinessProbe, container.Lifecycle
	if ready == nil || lifecycle == nil || lifecycle.PreStop == nil || lifecycle.PreStop.Sleep == nil ||
		spec.TerminationGracePeriodSeconds == nil {
		return Pod{}, errors.New("the receiver's Deployment has no readiness probe, no preStop sleep or no grace period")
	}
	drain, err := drainWait(container.Args)
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	return Pod{
		ProbeEvery: seconds(ready.PeriodSeconds), ProbeTimeout: seconds(ready.TimeoutSeconds),
		ProbeFailures: int(ready.FailureThreshold),
		PreStop:       time.Duration(lifecycle.PreStop.Sleep.Seconds) * time.Second, DrainWait: drain,
		Grace: time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second,
	}, err
}

func drainWait(args []string) (time.Duration, error) {
	for _, arg := range args {
		if wait, is := strings.CutPrefix(arg, "-drain-wait="); is {
			return time.ParseDuration(wait)
		}
	}
	return 0, errors.New("the receiver's Deployment has no -drain-wait")
}
