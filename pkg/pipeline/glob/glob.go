// SPDX-License-Identifier: Apache-2.0

// Package glob matches the patterns of authors as PaC does, in bounded time: there are no
// separators, so * crosses "/"; ** is the same; ?, [a-z], [!a], {a,b} and \ have their usual
// meaning.
package glob

import (
	"errors"
	"strings"

	"github.com/gobwas/glob"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// maxPattern bounds a pattern's bytes. Git services allow names of branches of some 250 bytes.
	maxPattern = 512
	// maxShown is how many bytes of a pattern an error repeats.
	maxShown = 256
	// It takes patternSteps to compile a pattern, and alternativeSteps more for each alternative.
	patternSteps     = 40
	alternativeSteps = 10
)

// Glob is a compiled pattern. It is immutable.
type Glob struct {
	alternatives []*glob.Pattern
	// before and after are the texts around the stars, if the pattern is nothing else.
	before, after string
	// wild is how many characters of the pattern stand for more than themselves.
	wild int
}

// Compile reads a pattern. The error is a fault.Invalid that shows the pattern without prefix,
// which is what the caller put in front of what the author wrote.
//
// Alternatives are spelt out first, because the library backtracks exponentially over several of
// them ({a*,*a}{a*,*a}… does not end), and linearly over stars alone.
func Compile(prefix, pattern string) (*Glob, error) {
	whole := prefix + pattern
	if len(whole) > maxPattern {
		return nil, fault.Invalidf(reasonBadPattern, "the pattern %q… has %d bytes, at most %d are read",
			pattern[:min(len(pattern), maxShown)], len(whole), maxPattern)
	}
	first, err := glob.Compile(whole)
	if err != nil {
		return nil, notAGlob(pattern, err)
	}
	spelt, ok := spellOut(whole)
	if !ok {
		return nil, fault.Invalidf(reasonBadPattern,
			"the pattern %q stands for more than %d alternatives: write fewer in braces", pattern, maxAlternatives)
	}
	g := &Glob{alternatives: make([]*glob.Pattern, len(spelt))}
	for _, c := range []byte("*?[") {
		g.wild += strings.Count(whole, string(c))
	}
	if len(spelt) == 1 && spelt[0] == whole {
		g.alternatives[0] = first
		g.before, g.after = around(whole)
		return g, nil
	}
	for i, alternative := range spelt {
		compiled, err := glob.Compile(alternative)
		if err != nil {
			return nil, notAGlob(pattern, err)
		}
		g.alternatives[i] = compiled
	}
	return g, nil
}

// around returns the texts around the stars of a pattern, or nothing if it has other elements.
func around(pattern string) (before, after string) {
	before, after, _ = strings.Cut(pattern, "*")
	after = strings.TrimLeft(after, "*")
	if strings.ContainsAny(before+after, `*?[\`) {
		return "", ""
	}
	return before, after
}

// Match reports whether the pattern matches the whole text. The library's version that PaC uses
// lets the texts around the stars overlap: refs/heads/**/go.mod matches refs/heads/go.mod, so an
// author's **/go.mod matches a file at the root.
func (g *Glob) Match(text string) bool {
	if g.before != "" && g.after != "" && strings.HasPrefix(text, g.before) && strings.HasSuffix(text, g.after) {
		return true
	}
	return g.MatchApart(text)
}

// MatchApart is Match without that overlap. It is for an administrator's lists, which give rights:
// acme/team-*-infra does not give any for acme/team-infra.
func (g *Glob) MatchApart(text string) bool {
	for _, alternative := range g.alternatives {
		if alternative.Match(text) {
			return true
		}
	}
	return false
}

// Steps is the most that compiling the pattern and matching it with each of the texts takes, in
// steps of less than a microsecond.
func (g *Glob) Steps(texts []string) int {
	characters := 0
	for _, text := range texts {
		characters += len(text)
	}
	return patternSteps + len(g.alternatives)*(alternativeSteps+len(texts)/10+characters*g.wild/1000)
}

// notAGlob repeats the library's reason without its offset, which counts the caller's prefix.
func notAGlob(pattern string, err error) error {
	why := err.Error()
	var syntax *glob.SyntaxError
	if errors.As(err, &syntax) {
		why = syntax.Reason
	}
	return fault.Invalidf(reasonBadPattern, "the pattern %q is not a glob: %s", pattern, why)
}
