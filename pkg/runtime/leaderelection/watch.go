// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watch makes this process request a lease at once that was released or deleted. While the watch
// does not work, the next attempt is after one to two retry periods.
func (e *Election) watch() error {
	factory := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithNamespace(e.namespace))
	leases := factory.Coordination().V1().Leases().Informer()
	_, err := leases.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if holder(before) != "" && holder(after) == "" {
				e.free(after)
			}
		},
		DeleteFunc: e.free,
	})
	if err != nil {
		return err
	}
	factory.Start(e.stop)
	return nil
}

func (e *Election) free(object any) {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	e.mu.Lock()
	t, known := e.terms[name.Name]
	e.mu.Unlock()
	if known {
		t.free()
	}
}

func holder(object any) string {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
