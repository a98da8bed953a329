// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/glob"
)

// Owners says which namespaces may serve which URLs. The zero value requires no proof.
type Owners struct {
	// Asked is true when the key is set: then a Repository is served only with a proof that its
	// namespace may have the URL.
	Asked bool
	// Broken says what is wrong with the key, "" if nothing is. While it is set, no namespace is an
	// owner.
	Broken string

	listed map[string][]*glob.Glob // by namespace
}

// Listed returns the namespaces that the administrator has listed for a canonical URL, sorted.
func (o Owners) Listed(canonical string) []string {
	var found []string
	for _, namespace := range slices.Sorted(maps.Keys(o.listed)) {
		if slices.ContainsFunc(o.listed[namespace], func(g *glob.Glob) bool { return g.MatchApart(canonical) }) {
			found = append(found, namespace)
		}
	}
	return found
}

// Bar reports whether a namespace cannot claim a canonical URL: the administrator has listed it for
// other namespaces only.
func (o Owners) Bar(canonical, namespace string) bool {
	listed := o.Listed(canonical)
	return len(listed) > 0 && !slices.Contains(listed, namespace)
}

const ownersForm = `a YAML map of namespaces to lists of URL globs, like "team-a: [https://github.com/acme/*]"`

// owners reads the key. A bad value denies everything until it is fixed: the previous value could
// allow too much.
func (p *parser) owners() Owners {
	v, ok := p.value(keyURLOwners)
	if !ok {
		return Owners{}
	}
	o := Owners{Asked: true, listed: map[string][]*glob.Glob{}}
	patterns := map[string][]string{}
	if err := yaml.UnmarshalStrict([]byte(v), &patterns); err != nil {
		o.Broken = "it is not a map of namespaces to lists of URL globs"
	}
	for _, namespace := range slices.Sorted(maps.Keys(patterns)) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			o.Broken = fmt.Sprintf("%q is not the name of a namespace", namespace)
			break
		}
		for _, pattern := range patterns[namespace] {
			compiled, problem := urlGlob(pattern)
			if problem != "" {
				o.Broken = fmt.Sprintf("%s: %q %s", namespace, pattern, problem)
			}
			o.listed[namespace] = append(o.listed[namespace], compiled)
		}
	}
	if o.Broken != "" {
		o.listed = nil
		p.errs = append(
			p.errs,
			fmt.Errorf("key %q: %s; allowed: %s; no event starts anything until it is fixed",
				keyURLOwners, o.Broken, ownersForm),
		)
	}
	return o
}

// urlGlob compiles a glob of canonical URLs, which are in lower case. Its host is a name: a star in
// it would match the path of another host's URL, too.
func urlGlob(pattern string) (*glob.Glob, string) {
	lower := strings.ToLower(strings.TrimSpace(pattern))
	scheme, rest, _ := strings.Cut(lower, "://")
	if scheme != "https" && scheme != "http" {
		return nil, "does not start with https:// or http://"
	}
	if host, _, _ := strings.Cut(rest, "/"); host == "" || strings.ContainsAny(host, `*?[]{}\!`) {
		return nil, "does not name one host"
	}
	compiled, err := glob.Compile("", lower)
	if err != nil {
		return nil, "is not a glob"
	}
	return compiled, ""
}
