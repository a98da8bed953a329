// SPDX-License-Identifier: Apache-2.0

package match

import (
	"errors"
	"strings"

	"github.com/gobwas/glob"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
	// maxPattern bounds a pattern's bytes. Git services allow names of branches of some 250 bytes.
	maxPattern = 512
)

// matchRef tells whether a pattern of an author matches the ref of an event (spec/compatibility.md 3.4): equality counts,
// a pattern for tags is held against the ref as it is, any other is a pattern of branches with or without refs/heads/.
func matchRef(pattern, ref string) (bool, error) {
	if pattern == ref {
		return true, nil
	}
	if strings.HasPrefix(pattern, tagPrefix) {
		return matchGlob(pattern, ref)
	}
	if !strings.HasPrefix(pattern, branchPrefix) {
		pattern = branchPrefix + pattern
	}
	if !strings.HasPrefix(ref, branchPrefix) && !strings.HasPrefix(ref, tagPrefix) {
		ref = branchPrefix + ref
	}
	return matchGlob(pattern, ref)
}

// matchGlob matches without separators, so that * crosses "/". Alternatives are spelt out first, because the library
// backtracks exponentially over several of them ({a*,*a}{a*,*a}… does not end), and linearly over stars alone.
func matchGlob(pattern, text string) (bool, error) {
	shown := strings.TrimPrefix(pattern, branchPrefix)
	if len(pattern) > maxPattern {
		return false, fault.Invalidf("BadPattern", "the pattern %q has %d bytes, at most %d are read", shorten(shown), len(pattern), maxPattern)
	}
	if _, err := glob.Compile(pattern); err != nil {
		return false, notAGlob(shown, err)
	}
	alternatives, ok := spellOut(pattern)
	if !ok {
		return false, fault.Invalidf("BadPattern", "the pattern %q stands for more than %d alternatives: write fewer in braces", shown, maxAlternatives)
	}
	for _, alternative := range alternatives {
		compiled, err := glob.Compile(alternative)
		if err != nil {
			return false, notAGlob(shown, err)
		}
		if compiled.Match(text) {
			return true, nil
		}
	}
	return false, nil
}

// notAGlob repeats the library's reason without its offset, which counts our prefix.
func notAGlob(pattern string, err error) error {
	why := err.Error()
	var syntax *glob.SyntaxError
	if errors.As(err, &syntax) {
		why = syntax.Reason
	}
	return fault.Invalidf("BadPattern", "the pattern %q is not a glob: %s", pattern, why)
}
