// SPDX-License-Identifier: Apache-2.0

// Package glob matches the patterns of authors as PaC does (spec/compatibility.md 3.4), in bounded time: there are no
// separators, so * crosses "/"; ** is the same; ?, [a-z], [!a], {a,b} and \ have their usual meaning.
package glob

import (
	"errors"

	"github.com/gobwas/glob"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// maxPattern bounds a pattern's bytes. Git services allow names of branches of some 250 bytes.
	maxPattern = 512
	// maxShown is how many bytes of a pattern an error repeats.
	maxShown = 256
)

// Glob is a compiled pattern. It is immutable.
type Glob struct {
	alternatives []*glob.Pattern
}

// Compile reads a pattern. The error is a fault.Invalid that shows the pattern without prefix, which is what the caller
// put in front of what the author wrote.
//
// Alternatives are spelt out first, because the library backtracks exponentially over several of them
// ({a*,*a}{a*,*a}… does not end), and linearly over stars alone.
func Compile(prefix, pattern string) (*Glob, error) {
	whole := prefix + pattern
	if len(whole) > maxPattern {
		return nil, fault.Invalidf("BadPattern", "the pattern %q… has %d bytes, at most %d are read", pattern[:min(len(pattern), maxShown)], len(whole), maxPattern)
	}
	if _, err := glob.Compile(whole); err != nil {
		return nil, notAGlob(pattern, err)
	}
	spelt, ok := spellOut(whole)
	if !ok {
		return nil, fault.Invalidf("BadPattern", "the pattern %q stands for more than %d alternatives: write fewer in braces", pattern, maxAlternatives)
	}
	g := &Glob{alternatives: make([]*glob.Pattern, len(spelt))}
	for i, alternative := range spelt {
		compiled, err := glob.Compile(alternative)
		if err != nil {
			return nil, notAGlob(pattern, err)
		}
		g.alternatives[i] = compiled
	}
	return g, nil
}

// Match tells whether the pattern matches the whole text.
func (g *Glob) Match(text string) bool {
	for _, alternative := range g.alternatives {
		if alternative.Match(text) {
			return true
		}
	}
	return false
}

// Cost is how many comparisons one Match may need.
func (g *Glob) Cost() int { return len(g.alternatives) }

// notAGlob repeats the library's reason without its offset, which counts the caller's prefix.
func notAGlob(pattern string, err error) error {
	why := err.Error()
	var syntax *glob.SyntaxError
	if errors.As(err, &syntax) {
		why = syntax.Reason
	}
	return fault.Invalidf("BadPattern", "the pattern %q is not a glob: %s", pattern, why)
}
