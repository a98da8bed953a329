// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
)

// kwokStages is the configuration of kwok: what nodes and pods do.
//
//go:embed kwok.yaml
var kwokStages []byte

// nodeName is the one Node; its capacity is in kwok.yaml.
const nodeName = "test-node"

func (c *Cluster) createNode(ctx context.Context) error {
	node := object("v1", "Node", "", nodeName)
	node.SetAnnotations(map[string]string{"kwok.x-k8s.io/node": "fake"})
	node.SetLabels(map[string]string{
		"kubernetes.io/hostname": nodeName, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
	})
	return c.create(ctx, node)
}
