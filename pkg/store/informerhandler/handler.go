// SPDX-License-Identifier: Apache-2.0

// Package informerhandler adapts functions to the handlers of informers.
package informerhandler

import "k8s.io/client-go/tools/cache"

// For returns an informer's handler that calls changed for each object of type T that is added or
// changed, and deleted for each that is deleted, also if the informer missed the deletion.
func For[T any](changed, deleted func(T)) cache.ResourceEventHandler {
	call := func(f func(T), obj any) {
		if object, ok := Object[T](obj); ok {
			f(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { call(changed, obj) },
		UpdateFunc: func(_, obj any) { call(changed, obj) },
		DeleteFunc: func(obj any) { call(deleted, obj) },
	}
}

// ForPairs returns an informer's handler that calls changed with each object of type *T before and
// after its change. before is nil for an added object, and after for a deleted one.
func ForPairs[T any](changed func(before, after *T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if after, ok := Object[*T](obj); ok {
				changed(nil, after)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := Object[*T](oldObj)
			after, ok2 := Object[*T](newObj)
			if ok && ok2 {
				changed(before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if before, ok := Object[*T](obj); ok {
				changed(before, nil)
			}
		},
	}
}

// Object returns the object of type T that an informer passes to a handler. For an object whose
// deletion the informer missed, that is its last known state.
func Object[T any](obj any) (object T, ok bool) {
	if missed, deleted := obj.(cache.DeletedFinalStateUnknown); deleted {
		obj = missed.Obj
	}
	object, ok = obj.(T)
	return object, ok
}
