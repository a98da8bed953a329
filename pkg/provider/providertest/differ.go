// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testDiffer: the difference of two commits depends on their content, not on their history. What no
// retry can find out is Invalid, everything else is retried.
func testDiffer(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	client := connect(t, w)
	first := w.Service.Commit("main",
		map[string]string{".tekton/a.yaml": "1", ".tekton/deep/b.yaml": "1", "OWNERS": "ann", "x": "1", "docs/OWNERS": "eve"})
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"another file, and OWNERS elsewhere": {
			map[string]string{"x": "2", "docs/OWNERS": "bob", "docs/.tekton/a.yaml": "2"}, nil,
		},
		"a definition":                  {map[string]string{".tekton/deep/b.yaml": "2"}, []string{".tekton"}},
		"a new file beside definitions": {map[string]string{".tekton/script.sh": "2"}, []string{".tekton"}},
		"OWNERS":                        {map[string]string{"OWNERS": "eve"}, []string{"OWNERS"}},
		"aliases, which there were not": {map[string]string{"OWNERS_ALIASES": "eve"}, []string{"OWNERS_ALIASES"}},
		"both": {
			map[string]string{"OWNERS": "eve", ".tekton/a.yaml": "2"}, []string{".tekton", "OWNERS"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := w.Service.ForcePush("topic", first, c.files)
			for _, pair := range [][2]string{{first, after}, {after, first}} {
				got, err := client.Differ(t.Context(), pair[0], pair[1], ".tekton", "OWNERS", "OWNERS_ALIASES")
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%v, %v, want %v", got, err, c.want)
				}
			}
		})
	}
	unknown := strings.Repeat("ab", 20)
	t.Run("the earlier commit is gone", func(t *testing.T) {
		if got, err := client.Differ(t.Context(), unknown, first, "OWNERS"); got != nil || !fault.Is(err, fault.Invalid) {
			t.Errorf("%v, %v, want an Invalid fault", got, err)
		}
	})
	t.Run("the later commit is not there yet", func(t *testing.T) {
		if got, err := client.Differ(t.Context(), first, unknown, "OWNERS"); got != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%v, %v, want a Transient fault", got, err)
		}
	})
	for how, class := range map[Failure]fault.Class{
		Unavailable: fault.Transient, Disconnected: fault.Transient, Garbage: fault.Transient, RateLimited: fault.Throttled,
		Unauthorized: fault.Operator, Forbidden: fault.Invalid,
	} {
		t.Run(string(how), func(t *testing.T) {
			w := open(t)
			sha := w.Service.Commit("main", map[string]string{"OWNERS": "one"})
			w.Service.Fail(ReadDirectory, how, 0)
			if got, err := connect(t, w).Differ(t.Context(), sha, sha, "OWNERS"); got != nil || !fault.Is(err, class) {
				t.Errorf("%v, %v, want a fault of class %s", got, err, class)
			}
		})
	}
}
