// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"build", "build-arm", "deploy", "lint", "x"}
	for name, want := range map[string]string{
		"biuld": "build", "buil": "build", "Build": "build", "buildd": "build", "deplyo": "deploy", "depoy": "deploy",
		"build_arm": "build-arm",
		"release":   "", "lnit": "lint", "y": "", "": "", "tests": "", "a name that is longer than all of them": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
