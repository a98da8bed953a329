// SPDX-License-Identifier: Apache-2.0

package cel

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonCELEnvironment = "CELEnvironment"
	reasonCELValues      = "CELValues"
)
