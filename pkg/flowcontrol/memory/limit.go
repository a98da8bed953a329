// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime/debug"
	"strconv"
	"time"
)

// garbage is how much a process may make before it is collected, in hundredths of what it holds.
// Most of that are caches of objects that nobody changes: with Go's own 100 each idle Repository
// would take as much again.
const garbage = 50

// filled is when the caches of a process that has started are filled.
const filled = 10 * time.Second

// Set is Limit and Collect with what the environment says.
func Set(env func(name string) string) {
	Limit(env("CONTAINER_MEMORY"), env("GOMEMLIMIT"))
	Collect(env("GOGC"))
}

// Collect sets how often the collector runs, and gives back what the first lists took as soon as
// the caches are filled. Where GOGC is set nothing is changed.
func Collect(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(garbage)
		time.AfterFunc(filled, debug.FreeOSMemory)
	}
}

// Limit makes the collector work harder as the process comes near its container's limit, which is
// in bytes as the downward API writes it. A tenth is left for what Go does not count. Without a
// number, and where GOMEMLIMIT is set, nothing is changed.
func Limit(container, goMemLimit string) {
	limit, err := strconv.ParseInt(container, 10, 64)
	if err != nil || limit <= 0 || goMemLimit != "" {
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}
