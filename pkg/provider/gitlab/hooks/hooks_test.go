// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"
	"testing"
)

// Whoever has a GitLab chooses the keys in its log, which are kept in memory.
func TestAttemptsDropInvalidKeys(t *testing.T) {
	e := hookEvent{ID: 1, Status: "503", Header: map[string]string{"Idempotency-Key": strings.Repeat("k", 100_000)}}
	if a := e.attempt(); a.GUID != "" || a.Starts || a.ID != 1 || a.Status != 503 {
		t.Errorf("kept %d bytes of %+v", len(a.GUID), a.ID)
	}
}
