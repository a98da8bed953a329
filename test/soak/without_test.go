// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Only make test-all builds the receiver without Connection: close, so make test checks that the
// line is still where the build removes it.
func TestSourceUnclosedFindsTheLine(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := sourceUnclosed(root); err != nil {
		t.Error(err)
	}
}
