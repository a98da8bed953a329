// SPDX-License-Identifier: Apache-2.0

package roundrobin

import (
	"slices"
	"testing"
)

func TestOwnersTakeTurns(t *testing.T) {
	all := []string{"a1", "a2", "a3", "b1", "c1", "c2"}
	Sort(all, func(value string) byte { return value[0] })
	if want := []string{"a1", "b1", "c1", "a2", "c2", "a3"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
}
