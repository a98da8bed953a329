// SPDX-License-Identifier: Apache-2.0

// Package operator tests `plumb migrate operator` on a real API server with the real garbage
// collector, next to a stand-in for the Tekton operator.
package operator
