// SPDX-License-Identifier: Apache-2.0

package signal

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch calls changed with a ConfigMap when it appears and when it changes, until ctx ends. It does
// not wait for the first answer of the API server.
func Watch(
	ctx context.Context, kube kubernetes.Interface, namespace, name string, changed func(*corev1.ConfigMap),
) error {
	one := cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "configmaps", namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	informer := cache.NewSharedInformer(one, &corev1.ConfigMap{}, 0)
	call := func(object any) {
		if cm, ok := object.(*corev1.ConfigMap); ok {
			changed(cm)
		}
	}
	if _, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: call, UpdateFunc: func(_, object any) { call(object) }},
	); err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	return nil
}
