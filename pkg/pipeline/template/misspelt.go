// SPDX-License-Identifier: Apache-2.0

package template

import (
	"regexp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// maxCompared is how many different names of a text are compared with the variables, and
	// maxMisspelt how many misspelt ones are returned.
	maxCompared = 100
	maxMisspelt = 10
)

// Misspelling is a placeholder that stays as it is, and the variable that it most likely means.
type Misspelling struct{ Name, Meant string }

// Says returns the sentence for its author.
func (m Misspelling) Says() string {
	return "{{ " + m.Name + " }} is not defined, so it stays as it is. Did you mean {{ " + m.Meant + " }}?"
}

// named matches placeholders that are names: templates of other programs ({{.State}}) are not.
var named = regexp.MustCompile(`{{[ \t]*([A-Za-z][A-Za-z0-9_-]{2,40})[ \t]*}}`)

// Misspelt returns the placeholders of a text that do not exist but look like a variable. Others
// are not reported: they may be meant for another program.
func (s *Scope) Misspelt(written string) []Misspelling {
	known := append(append(s.standardNames(), s.names...), parts()...)
	slices.Sort(known)
	compared := map[string]bool{}
	var all []Misspelling
	for _, found := range named.FindAllStringSubmatch(written, -1) {
		name := found[1]
		if compared[name] || slices.Contains(known, name) {
			continue
		}
		compared[name] = true
		if meant := text.Nearest(name, known); meant != "" {
			all = append(all, Misspelling{Name: name, Meant: meant})
		}
		if len(compared) == maxCompared || len(all) == maxMisspelt {
			break
		}
	}
	return all
}
