// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// ignoredKeys finds keys of Pipelines-as-Code in the ConfigMap that have no effect. Another check
// reports a ConfigMap that this account may not read.
func (c *Checker) ignoredKeys(ctx context.Context) []Finding {
	cm, err := c.kube.CoreV1().ConfigMaps(c.Namespace).Get(ctx, c.configMap(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	var all []Finding
	for _, line := range config.DescribeIgnored(cm.Data) {
		all = append(all, Finding{
			Object:  fmt.Sprintf("ConfigMap %s/%s", c.Namespace, c.configMap()),
			Problem: "has a setting without effect: " + line,
			Remedy:  "remove the key; docs/migration.md lists all of them",
		})
	}
	return all
}
