// SPDX-License-Identifier: Apache-2.0

// Package fairness keeps the deliveries of one tenant from delaying those of others. It limits what
// is in flight for each namespace, how many deliveries of one Repository are recorded at once, how
// many bytes are written for a namespace in a second, and the use of the processor.
package fairness

import "sync"

// heavyBytes is the size of a body that costs milliseconds of a processor: 10 to decode 256 KiB and
// as many again to compress it. A push of 300 files has 100 KiB.
const heavyBytes = 256 << 10

// heavy is locked while one heavy body is computed on. A small delivery waits for a processor at
// some ten points on its way. With thirty heavy bodies at once it waited a second in all.
var heavy sync.Mutex //nolint:gochecknoglobals // the processors belong to the process, too

// Compute calls work, which only computes on the body. Work on heavy bodies runs one at a time;
// work on a small body starts at once.
func Compute(body []byte, work func()) {
	if len(body) > heavyBytes {
		heavy.Lock()
		defer heavy.Unlock()
	}
	work()
}
