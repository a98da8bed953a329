// SPDX-License-Identifier: Apache-2.0

package repository

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonCacheNotSynced = "CacheNotSynced"
	reasonClaimReleased  = "ClaimReleased"
	reasonClaimVanished  = "ClaimVanished"
	reasonQueued         = "Queued"
)
