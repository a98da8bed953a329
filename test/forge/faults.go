// SPDX-License-Identifier: Apache-2.0

package forge

import "github.com/plumbline-ci/plumbline/test/forge/internal/traffic"

// Fault is a scripted misbehaviour. It takes the calls that match both Route
// and Match; of several faults the one injected first and still active wins.
type Fault = traffic.Fault

// FaultHandle is an injected fault.
type FaultHandle = traffic.FaultHandle
