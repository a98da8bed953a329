// SPDX-License-Identifier: Apache-2.0

// Package mutants has patches that each break one invariant: `make mutants` plays a campaign against every one.
package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Each patch names its invariant and applies to this tree, and each invariant that a campaign checks has at least two.
func TestEachPatchApplies(t *testing.T) {
	patches, err := filepath.Glob("*.patch")
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`^Breaks: (I-\d+|S21|pruning|newest|cancelling|pairs)\n`)
	of := map[string]int{}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		breaks := header.FindSubmatch(text)
		if breaks == nil {
			t.Errorf("%s does not say in its first line what it breaks", patch)
			continue
		}
		of[string(breaks[1])]++
		path, err := filepath.Abs(patch)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "git", "apply", "--check", path)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply any more, make it anew: %v\n%s", patch, err, out)
		}
	}
	for _, invariant := range []string{"I-1", "I-2", "I-3", "I-4", "I-5", "I-6", "I-7", "I-8", "I-9", "I-10", "S21", "pruning", "newest", "cancelling", "pairs"} {
		if of[invariant] < 2 {
			t.Errorf("%s has %d mutants, want at least two", invariant, of[invariant])
		}
	}
}
