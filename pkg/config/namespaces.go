// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Namespaces are the namespaces whose Repositories an installation serves. The zero value is every
// namespace.
type Namespaces struct {
	// Broken says why the value cannot be read, where no earlier value is known. The installation
	// then starts nothing outside of its own namespace, and releases no namespace.
	Broken string

	own              string   // set by Store, so that it also marks a value that was stored
	served, excluded []string // names and globs, sorted
}

// Serve reports whether the installation serves the Repositories of a namespace. It always serves
// those of its own.
func (n Namespaces) Serve(namespace string) bool {
	if namespace == n.own && n.own != "" {
		return true
	}
	return n.Broken == "" && (len(n.served) == 0 || match(n.served, namespace)) && !match(n.excluded, namespace)
}

// All reports whether the setting restricts nothing.
func (n Namespaces) All() bool { return n.Broken == "" && len(n.served)+len(n.excluded) == 0 }

// Leave reports whether the installation releases what it has of a namespace: it does not serve the
// namespace, and the setting can be read.
func (n Namespaces) Leave(namespace string) bool { return n.Broken == "" && !n.Serve(namespace) }

// Names returns the served namespaces where the setting lists each by its name, sorted; else none.
func (n Namespaces) Names() []string {
	if slices.ContainsFunc(n.served, isGlob) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.served), func(name string) bool { return match(n.excluded, name) })
}

// Unmatched returns the listed names and globs that match none of the namespaces, sorted.
func (n Namespaces) Unmatched(namespaces []string) []string {
	return slices.DeleteFunc(slices.Clone(n.served), func(pattern string) bool {
		return slices.ContainsFunc(namespaces, func(namespace string) bool { return match([]string{pattern}, namespace) })
	})
}

func isGlob(pattern string) bool { return strings.Contains(pattern, "*") }

func match(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, _ := path.Match(pattern, namespace) // a pattern of letters, digits, hyphens and stars is never bad
		return matched
	})
}

const namespacesForm = `names of namespaces and globs with *, separated by commas, like "team-a, ci-*"; "!" in front of one excludes it, like "!team-b"`

// namespaces reads the key. A process that knows an earlier value keeps it when the new one is bad:
// otherwise a typing error would release the claims of many teams.
func (p *parser) namespaces(previous Namespaces) Namespaces {
	v, _ := p.value(keyServeNamespaces)
	n := Namespaces{}
	for _, pattern := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		name, excluded := strings.CutPrefix(pattern, "!")
		if len(validation.IsDNS1123Label(strings.ReplaceAll(name, "*", "x"))) > 0 {
			return p.badNamespaces(fmt.Sprintf("%q is neither the name of a namespace nor a glob of names", pattern), previous)
		}
		if excluded {
			n.excluded = append(n.excluded, name)
		} else {
			n.served = append(n.served, name)
		}
	}
	if v != "" && len(n.served)+len(n.excluded) == 0 {
		return p.badNamespaces("it names no namespace", previous)
	}
	slices.Sort(n.served)
	slices.Sort(n.excluded)
	return n
}

func (p *parser) badNamespaces(problem string, previous Namespaces) Namespaces {
	p.bad(keyServeNamespaces, problem,
		namespacesForm+"; at the start no namespace of a team is served until the key is corrected")
	if previous.own != "" && previous.Broken == "" {
		return previous
	}
	return Namespaces{Broken: problem}
}
