// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gobwas/glob"
	"github.com/google/go-cmp/cmp"
)

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
	const prefix = "refs/heads/"
	compared := 0
	for range 100000 {
		pattern, text := pick(`ab*?{{,,}}[]\!`, 1+random.IntN(9)), pick("ab,{", random.IntN(5))
		whole, err := glob.Compile(prefix + pattern)
		if err != nil || !strings.Contains(pattern, "{") {
			continue
		}
		compiled, err := Compile(prefix, pattern)
		if err != nil {
			t.Fatalf("pattern %q: %v", pattern, err)
		}
		got := compiled.Match(prefix + text)
		if want := whole.Match(prefix + text); got != want {
			t.Fatalf("pattern %q, text %q: %t, the library says %t", pattern, text, got, want)
		}
		compared++
	}
	if compared < 1000 {
		t.Errorf("only %d patterns compiled", compared)
	}
}

// The wants are the answers of gobwas/glob v0.2.3, the version that PaC uses.
func TestTextsAroundStarsOverlapAsInPaC(t *testing.T) {
	for pattern, text := range map[string]string{
		"**/go.mod": "go.mod", "*/main": "main", "docs/**/a.md": "docs/a.md", "ab*ba": "aba",
	} {
		g, err := Compile("refs/heads/", pattern)
		if err != nil || !g.Match("refs/heads/"+text) {
			t.Errorf("%s does not match %s: %v", pattern, text, err)
		}
	}
	for pattern, text := range map[string]string{
		"**/go.mod": "go.mods", "a?*b": "ab", "{**/main,x}": "main", "a*b*aa": "aba",
	} {
		g, err := Compile("refs/heads/", pattern)
		if err != nil || g.Match("refs/heads/"+text) {
			t.Errorf("%s matches %s: %v", pattern, text, err)
		}
	}
}
