// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logtesting "knative.dev/pkg/logging/testing"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// When the ConfigMap is deleted and created again, the receiver must not serve the namespaces of
// other installations in between.
func TestDeletedConfigMapKeepsItsValues(t *testing.T) {
	c := &cluster{namespace: "plumbline", config: config.NewStore(logtesting.TestLogger(t))}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: config.Name},
		Data: map[string]string{"serve-namespaces": "team-a"}}
	follow := c.settingsHandler()
	follow.OnAdd(cm, true)
	follow.OnDelete(cm)
	if c.config.Load().Namespaces.Serve("team-b") {
		t.Error("team-b is served")
	}
}
