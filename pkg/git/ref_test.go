// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"testing"
)

func TestIsRefName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main", "release/1.2", "v1.0.0", "feature/a-b_c@d", "日本"} {
		if !IsRefName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", "/main", "main/", "a//b", "a..b", "release/../../../../../../other/app/git/ref/heads/main", "../x", ".", "./a",
		"a/./b", "a/.b", "main.", "a b", "a\tb", "a\x00b", "a~1", "a^", "a:b", "a?b", "a*", "a[b", `a\b`,
		strings.Repeat("a", maxRefName+1),
	} {
		if IsRefName(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}
