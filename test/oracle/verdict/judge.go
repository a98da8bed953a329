// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

// Intended is a difference that Plumbline wants, and that the documentation describes.
type Intended struct {
	// Name is a few words for the tally.
	Name string
	// Because is the reason, in one sentence.
	Because string
	// Page is the page of docs/ that tells it, and Says the words there.
	Page, Says string
	// Explains reports whether a difference is this one.
	Explains func(scenario.Scenario, Difference) bool
}

// Judge splits differences into intended ones, by the name of the first that explains them, and
// the others.
func Judge(s scenario.Scenario, found []Difference) (meant map[string]int, others []Difference) {
	meant = map[string]int{}
next:
	for _, d := range found {
		for _, m := range Differences() {
			if m.Explains(s, d) {
				meant[m.Name]++
				continue next
			}
		}
		others = append(others, d)
	}
	return meant, others
}
