// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"
	"time"

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

func FuzzSelect(f *testing.F) {
	for _, seed := range []string{"[main]", "{a,b}", "[a&#44;b]", "refs/tags/*", `\`, "[!", "**"} {
		f.Add(seed, "refs/heads/main")
	}
	f.Fuzz(func(t *testing.T, value, ref string) {
		annotations := annotated("on-event", "push", "on-target-branch", value)
		got, err := Select(push(ref), Pipeline{Annotations: annotations})
		if err != nil && (!cmp.Equal(got, Selection{}) || !fault.Is(err, fault.Invalid)) {
			t.Errorf("Select = %+v, %v", got, err)
		}
		if err == nil && got.Selected != strings.HasPrefix(got.Reason, Selected+": ") {
			t.Errorf("Select = %+v", got)
		}
	})
}
