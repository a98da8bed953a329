// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// rights are those that the account lacks: the namespaces of each.
type rights map[string][]string

// inNamespace separates the namespace of a right that kube.Right returns.
const inNamespace = " in namespace "

// note reports whether an error is a missing right, and notes it.
func (c *collector) note(err error) bool {
	right := kube.Right(err)
	if right == "" {
		return false
	}
	what, namespace, _ := strings.Cut(right, inNamespace)
	if c.rights == nil {
		c.rights = rights{}
	}
	if !slices.Contains(c.rights[what], namespace) {
		c.rights[what] = append(c.rights[what], namespace)
	}
	return true
}

// missing returns one text for each right, with the number of namespaces if there are many.
func (r rights) missing() []string {
	var all []string
	for what, namespaces := range r {
		switch slices.Sort(namespaces); {
		case namespaces[0] == "" && len(namespaces) == 1:
			all = append(all, what)
		case len(namespaces) == 1:
			all = append(all, what+inNamespace+namespaces[0])
		default:
			all = append(all,
				fmt.Sprintf("%s in %d namespaces: %s", what, len(namespaces), text.Some(namespaces, maxNamed, ", ")))
		}
	}
	slices.Sort(all)
	return all
}

// maxNamed is how many objects a text names: examples are enough. JSON has all.
const maxNamed = 5
