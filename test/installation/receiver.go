// SPDX-License-Identifier: Apache-2.0

package installation

import "time"

const (
	// Outwaited is how long a receiver waits for one answer of the API server (kubeCallBudget of pkg/receiver): a 503 that took longer is
	// the machine's.
	Outwaited = 3 * time.Second
	// Unheard is how long it waits for the headers of a request (headerTimeout there), counted from the connection's begin: a connection
	// that it cuts off after that is the machine's.
	Unheard = 2 * time.Second
)
