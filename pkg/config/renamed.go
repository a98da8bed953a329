// SPDX-License-Identifier: Apache-2.0

package config

import (
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/configmap"
)

// nameAnnotation has the name of a ConfigMap that As has renamed.
const nameAnnotation = "plumbline.dev/config-map"

// As returns a copy of a ConfigMap under the name that a Store knows.
func As(cm *corev1.ConfigMap) *corev1.ConfigMap {
	if cm.Name == Name {
		return cm
	}
	renamed := cm.DeepCopy()
	if renamed.Annotations == nil {
		renamed.Annotations = map[string]string{}
	}
	renamed.Annotations[nameAnnotation], renamed.Name = cm.Name, Name
	return renamed
}

// nameOf returns the name that a ConfigMap has in the cluster.
func nameOf(cm *corev1.ConfigMap) string {
	if name := cm.Annotations[nameAnnotation]; name != "" {
		return name
	}
	return cm.Name
}

// Watching returns a watcher that reads a Store's ConfigMap under another name.
func Watching(w configmap.Watcher, name string) configmap.Watcher {
	if name == Name {
		return w
	}
	return renaming{Watcher: w, name: name}
}

type renaming struct {
	configmap.Watcher
	name string
}

// Watch implements configmap.Watcher.
func (r renaming) Watch(name string, observers ...configmap.Observer) {
	if name != Name {
		r.Watcher.Watch(name, observers...)
		return
	}
	for _, observe := range observers {
		r.Watcher.Watch(r.name, func(cm *corev1.ConfigMap) { observe(As(cm)) })
	}
}
