// SPDX-License-Identifier: Apache-2.0

// Package informerhandler adapts functions to the handlers of informers.
package informerhandler

import "k8s.io/client-go/tools/cache"

// For returns an informer's handler that calls changed for each object of type T that is added or
// changed, and deleted for each that is deleted, also if the informer missed the deletion.
func For[T any](changed, deleted func(T)) cache.ResourceEventHandler {
	call := func(f func(T), obj any) {
		if object, ok := obj.(T); ok {
			f(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { call(changed, obj) },
		UpdateFunc: func(_, obj any) { call(changed, obj) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			call(deleted, obj)
		},
	}
}
