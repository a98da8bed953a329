// SPDX-License-Identifier: Apache-2.0

package status

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Stale returns, in their order, the desired checks that differ from what the Git service has
// accepted. A check that was accepted with a conclusion is never reopened (I-7): without a
// conclusion it is left out.
func Stale(desired []Check, accepted []v1alpha1.Check) []Check {
	known := make(map[string]v1alpha1.Check, len(accepted))
	for _, a := range accepted {
		known[a.Key] = a
	}
	var stale []Check
	for _, c := range desired {
		a := known[c.Key]
		if a.Concluded && c.State != Completed {
			continue
		}
		if a.Accepted != Digest(c) {
			stale = append(stale, c)
		}
	}
	return stale
}

// Digest identifies everything the Git service shows of a check. It is the same in every process
// and after the check's times have been through the API server, which keeps whole seconds.
func Digest(c Check) string {
	// A struct of strings and times always marshals.
	data, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
