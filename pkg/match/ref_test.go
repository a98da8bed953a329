// SPDX-License-Identifier: Apache-2.0

package match

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/glob"
	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestMatchRef(t *testing.T) {
	tests := map[string]struct {
		pattern, ref string
		want         bool
	}{
		"equal names match":                                     {"main", "main", true},
		"a name matches the ref of a push":                      {"main", "refs/heads/main", true},
		"a full ref matches the branch of a pull request":       {"refs/heads/main", "main", true},
		"a full ref matches the ref of a push":                  {"refs/heads/main", "refs/heads/main", true},
		"equality counts before the glob is read":               {"fix[1", "fix[1", true},
		"a star crosses slashes":                                {"release*", "refs/heads/release/1/2", true},
		"a star does not match what comes before":               {"*lease", "refs/heads/release/1", false},
		"a full ref may hold a star":                            {"refs/heads/rel*", "release", true},
		"two stars are one":                                     {"**", "refs/heads/a/b", true},
		"a question mark is one character":                      {"v?", "refs/heads/v1", true},
		"a class lists characters":                              {"v[0-9]", "refs/heads/v7", true},
		"a negated class excludes them":                         {"v[!0-9]", "refs/heads/v7", false},
		"braces list alternatives":                              {"{main,release-{1,2*}}", "refs/heads/release-25", true},
		"no alternative matches":                                {"{main,release-{1,2}}", "refs/heads/release-3", false},
		"a backslash escapes":                                   {`a\*`, "refs/heads/ab", false},
		"a tag needs its prefix in the pattern":                 {"v1", "refs/tags/v1", false},
		"a star of branches matches no tag":                     {"*", "refs/tags/v1", false},
		"a pattern of tags matches tags":                        {"refs/tags/v*", "refs/tags/v1", true},
		"a pattern of tags matches no branch":                   {"refs/tags/*", "refs/heads/v1", false},
		"a pattern of other refs is taken for a branch's name":  {"refs/*", "refs/tags/v1", false},
		"the end of a name does not match":                      {"main", "refs/heads/not-main", false},
		"a branch that is called like a pattern matches it":     {"a*", "refs/heads/a*", true},
		"a branch with the prefix twice is not the shorter one": {"main", "refs/heads/refs/heads/main", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := matchRef(tt.pattern, tt.ref)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("matchRef(%q, %q) = %t, want %t", tt.pattern, tt.ref, got, tt.want)
			}
		})
	}
}

func TestHostilePatternsEndSoonAndNeverPanic(t *testing.T) {
	patterns := []string{
		strings.Repeat("{a*,*a}", 60) + "c?",
		strings.Repeat("{a*,*a}", 7) + "c?",
		strings.Repeat("*a?", 150) + "b?",
		strings.Repeat("*", 400) + "b?",
		strings.Repeat("*[!b]", 90) + "b?",
		strings.Repeat("{", 500),
		strings.Repeat("{a,", 100) + "b" + strings.Repeat("}", 100),
		strings.Repeat("x", 1<<20),
		"[", "[]", "[!]", `\`, "{,}", "}", "[z-a]", "{a", "a}", "[a-", "\x00", "\xff", "[\xff-a]",
	}
	text := strings.Repeat("a", 1024)
	for _, pattern := range patterns {
		start := time.Now()
		_, err := matchRef(pattern, text)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("pattern %.40q: %v, want an Invalid fault", pattern, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("pattern %.40q took %s", pattern, took)
		}
	}
}

func TestSpellOut(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    []string
	}{
		"nothing to spell out":               {"main", []string{"main"}},
		"nested braces":                      {"a{b,c{d,e}}f", []string{"abf", "acdf", "acef"}},
		"two groups":                         {"{a,b}{c,d}", []string{"ac", "ad", "bc", "bd"}},
		"an empty alternative":               {"a{,b}", []string{"a", "ab"}},
		"a comma outside of braces":          {"a,b", []string{"a,b"}},
		"an escaped brace":                   {`a\{b,c`, []string{`a\{b,c`}},
		"a class that holds braces":          {"{[{,}],x}", []string{"[{,}]", "x"}},
		"a class that holds an escaped end":  {`{[\],],x}`, []string{`[\],]`, "x"}},
		"an alternative that ends in escape": {`{a\,b,c}`, []string{`a\,b`, "c"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := spellOut(tt.pattern)
			if !ok {
				t.Fatal("too many alternatives")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pattern spelt out means what the library takes the whole pattern for.
func TestSpellingOutChangesNoMeaning(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(letters string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	compared := 0
	for range 100000 {
		pattern, text := pick(`ab*?{{,,}}[]\!`, 1+random.IntN(9)), pick("ab,{", random.IntN(5))
		whole, err := glob.Compile(branchPrefix + pattern)
		if err != nil {
			continue
		}
		got, err := matchGlob(branchPrefix+pattern, branchPrefix+text)
		if err != nil {
			t.Fatalf("pattern %q: %v", pattern, err)
		}
		if want := whole.Match(branchPrefix + text); got != want {
			t.Fatalf("pattern %q, text %q: %t, the library says %t", pattern, text, got, want)
		}
		compared++
	}
	if compared < 1000 {
		t.Errorf("only %d patterns compiled", compared)
	}
}

func FuzzSelect(f *testing.F) {
	for _, seed := range []string{"[main]", "{a,b}", "[a&#44;b]", "refs/tags/*", `\`, "[!", "**"} {
		f.Add(seed, "refs/heads/main")
	}
	f.Fuzz(func(t *testing.T, value, ref string) {
		annotations := annotated("on-event", "push", "on-target-branch", value)
		selected, reason, err := Select(push(ref), Pipeline{Annotations: annotations})
		if err != nil && (selected || reason != "" || !fault.Is(err, fault.Invalid)) {
			t.Errorf("Select = %t, %q, %v", selected, reason, err)
		}
		if err == nil && selected != (reason == Selected) {
			t.Errorf("Select = %t, %q", selected, reason)
		}
	})
}
