// SPDX-License-Identifier: Apache-2.0

// Package kubeevents writes the Kubernetes Events that tenants see on their Repository.
package kubeevents

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/scheme"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
)

const (
	// clientQPS bounds the Events that a recorder writes in a second.
	clientQPS = 20
	// burst is how many Events of a type one Repository gets at once. After that it gets one in a
	// minute; the others are dropped.
	burst, perSecond = 25, 1. / 60
)

// source is the source of the Events.
const source = "plumbline"

// Recorder returns the recorder in ctx, which tests put there, or one that writes with the client
// in ctx until ctx is done. Events may be lost; anything that must not be lost belongs in a
// condition.
func Recorder(ctx context.Context) record.EventRecorder {
	if recorder := controller.GetEventRecorder(ctx); recorder != nil {
		return recorder
	}
	kube := kubeclient.Get(ctx)
	if cfg := injection.GetConfig(ctx); cfg != nil { // Events must delay no other call
		kube = apicalls.Client(cfg, "events", clientQPS)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: burst, QPS: perSecond, SpamKeyFunc: spamKey,
	}))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: source})
}

// spamKey returns the key of a limit: the Events of one type about one object. So normal Events
// never exhaust the limit of warnings.
func spamKey(event *corev1.Event) string {
	about := event.InvolvedObject
	return event.Type + " " + about.Kind + " " + about.Namespace + "/" + about.Name
}
