// SPDX-License-Identifier: Apache-2.0

// Package fairness keeps one tenant's deliveries from keeping those of others waiting: it shares a
// receiver's places, what is recorded at once, what is written in a second and the processor.
package fairness

import "sync"

// heavyBytes is a body whose reading takes milliseconds of a processor: 10 for 256 KiB, and as many
// again to compress it. A push of 300 files has 100 KiB.
const heavyBytes = 256 << 10

// processor is taken by one large body at a time. A small one has to wait for a processor at some
// ten points on its way, each time for all large ones that are being Worked on: for thirty of them
// it waited a second in all.
var processor sync.Mutex //nolint:gochecknoglobals // processors are the process's, too

// Worked calls work, which only calculates, when no other large body is Worked on. A small body
// does not wait.
func Worked(body []byte, work func()) {
	if len(body) > heavyBytes {
		processor.Lock()
		defer processor.Unlock()
	}
	work()
}
