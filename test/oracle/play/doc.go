// SPDX-License-Identifier: Apache-2.0

// Package play plays scenarios to Pipelines-as-Code and to Plumbline. Each has a cluster of its own, because both watch the same kinds, and
// an App of its own on one forge. So both see the same commits, comments and people, and neither sees what the other does.
package play
