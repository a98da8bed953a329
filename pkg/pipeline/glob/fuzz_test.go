// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"testing"

	"github.com/gobwas/glob"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Whatever an author writes is a glob that means what the library takes it for, or an Invalid
// fault.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"main", "release-*", "docs/**", "*.{md,txt}", "{a*,*a}{a*,*a}", "[a-z]?", "[!a]",
		`\*`, "{", "}", "[", "]", "{a,{b,c}}", "{[,],b}", `a\`, "日本*", "\xff*"} {
		f.Add(pattern, "docs/a.md")
		f.Add(pattern, pattern)
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if literal, err := Compile("", glob.QuoteMeta(text)); err == nil && !literal.Match(text) {
			t.Errorf("%q does not match itself", text)
		}
		compiled, err := Compile("refs/heads/", pattern)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("pattern %q: %v, want an Invalid fault", pattern, err)
			}
			return
		}
		got := compiled.Match("refs/heads/" + text)
		if len(compiled.alternatives) > maxAlternatives || len(compiled.alternatives) < 1 {
			t.Errorf("pattern %q costs %d", pattern, len(compiled.alternatives))
		}
		if len(pattern) > 16 || len(text) > 16 { // the library alone takes exponential time
			return
		}
		if want := glob.MustCompile("refs/heads/" + pattern).Match("refs/heads/" + text); got != want {
			t.Errorf("pattern %q, text %q: %t, the library says %t", pattern, text, got, want)
		}
	})
}
