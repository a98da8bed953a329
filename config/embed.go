// SPDX-License-Identifier: Apache-2.0

// Package manifests is what `kubectl apply -f config/` installs, for binaries that compare it with
// what is there.
package manifests

import "embed"

// Files are the manifests that cmd/internal/preflight compares with the cluster, by the names they
// have in config/.
//
//go:embed 210-clusterroles.yaml 220-clusterrolebindings.yaml 230-roles.yaml 240-rolebindings.yaml
//go:embed 300-crd-*.yaml 500-services.yaml
var Files embed.FS
