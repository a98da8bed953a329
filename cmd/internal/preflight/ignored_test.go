// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKeysWithoutEffectAreFound(t *testing.T) {
	for _, name := range []string{"plumbline", "pipelines-as-code"} {
		c, _ := checker(t, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: name},
			Data: map[string]string{
				"application-name":                     "CI",
				"bitbucket-cloud-check-source-ip":      "true",
				"bitbucket-cloud-additional-source-ip": "10.0.0.0/8",
			},
		})
		c.ConfigMap = name
		found := c.ignoredKeys(t.Context())
		if len(found) != 1 || !strings.Contains(found[0].Problem, `"bitbucket-cloud-additional-source-ip"`) ||
			found[0].Object != "ConfigMap plumbline/"+name {
			t.Errorf("%s: found %v, want the key that has an effect in Pipelines-as-Code", name, found)
		}
	}
}
