// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMisspelt(t *testing.T) {
	t.Parallel()
	scope, err := New(Facts{
		Variables: map[string]string{"revision": "abc", "repo_url": "u"}, Params: []Param{{Name: "image", Value: "x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 2 * maxCompared {
		fmt.Fprintf(&many, "{{ unrelated%d }}", i)
	}
	for written, want := range map[string][]Misspelling{
		"{{ revisoin }} {{ revisoin }}":                           {{"revisoin", "revision"}},
		"{{imgae}} {{ Repo_Url }}":                                {{"imgae", "image"}, {"Repo_Url", "repo_url"}},
		"{{ revision }} {{ body }} {{ git_auth_secret }}":         nil,
		"{{ .State }} {{ something_else }} {{ body.revisoin }} {": nil,
		many.String() + "{{ revisoin }}":                          nil,
	} {
		if diff := cmp.Diff(want, scope.Misspelt(written)); diff != "" {
			t.Errorf("%.40s: (-want +got)\n%s", written, diff)
		}
	}
}
