// SPDX-License-Identifier: Apache-2.0

// Package manifests reads what config/ installs, for tests that hold it to the architecture's section on high
// availability and to least rights. It needs no cluster.
package manifests
