// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
)

func TestCompileSuggestsNames(t *testing.T) {
	t.Parallel()
	environment, err := cel.ForMatching([]string{"tier"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`taget_branch == "x"`:              "1:1: taget_branch is not defined. Did you mean target_branch?",
		`tire == "x"`:                      "1:1: tire is not defined. Did you mean tier?",
		`source_branch.startWith("x")`:     "1:24: startWith is not defined. Did you mean startsWith?",
		`"docs/**".pathChange()`:           "1:21: pathChange is not defined. Did you mean pathChanged?",
		`event == "push" && nothing == ""`: "1:20: nothing is not defined",
	} {
		if _, err := environment.Compile(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
