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

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/scheme"
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
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kubeclient.Get(ctx).CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: source})
}
