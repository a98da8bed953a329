// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime/debug"
	"strconv"
	"time"
)

// garbage is how much garbage is collected at once, in percent of the live heap. Most of the heap
// are caches of objects that do not change: with Go's default of 100, each idle Repository would
// take its memory twice.
const garbage = 50

// filled is how long after its start the caches of a process are filled.
const filled = 10 * time.Second

// Set calls Limit and Collect with the environment's values.
func Set(env func(name string) string) {
	Limit(env("CONTAINER_MEMORY"), env("GOMEMLIMIT"))
	Collect(env("GOGC"))
}

// Collect sets how often the collector runs, and returns memory to the system once the caches are
// filled, because the first lists take much. It does nothing if GOGC is set.
func Collect(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(garbage)
		time.AfterFunc(filled, debug.FreeOSMemory)
	}
}

// Limit makes the collector work harder when the process comes near its container's limit, which is
// in bytes, as the downward API writes it. A tenth is left for what Go does not count. Limit does
// nothing without a number or if GOMEMLIMIT is set.
func Limit(container, goMemLimit string) {
	limit, err := strconv.ParseInt(container, 10, 64)
	if err != nil || limit <= 0 || goMemLimit != "" {
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}
