// SPDX-License-Identifier: Apache-2.0

package waiting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/internal/waiting"
)

// What a process waits for is logged once, however often it is found, and again when it comes back.
func TestEachLineIsLoggedOnce(t *testing.T) {
	var logged []string
	list := waiting.NewList(func(line string) { logged = append(logged, line) }, "start")
	list.Set("a", "b")
	list.Set("b", "c")
	if diff := cmp.Diff([]string{"b", "c"}, list.Lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	list.Set("c")
	list.Set()
	list.Set("c")
	if diff := cmp.Diff([]string{"a", "b", "c", "c"}, logged); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}
