// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"
)

// An offset in the replaced text leads back to what the author wrote, and from a value to its
// placeholder.
func TestWritten(t *testing.T) {
	scope, err := New(Facts{Variables: map[string]string{
		"long": "0123456789012345678901234567890123456789", "lines": "a\nb\nc", "none": "", "x": "{{ long }}",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"§", "§{{ long }}", "{{ long }}§", "{{ long }}{{ lines }}§", "größe {{ lines }} größe §é", "{{ none }}§{{ long }}",
		"{{none}}{{ unknown }} §",
		"{{ cel: size('abc') }} §", "{{ x }}§",
	} {
		before, after, _ := strings.Cut(text, "§")
		text := before + after
		placed, err := scope.Text(before)
		if err != nil {
			t.Fatal(err)
		}
		if got := scope.Written(text, len(placed)); got != len(before) {
			t.Errorf("%q: %d, want %d", text, got, len(before))
		}
	}
	if got := scope.Written("{{ long }}{{ unknown }}", 45); got != 15 {
		t.Errorf("in a placeholder that stays as it is: %d, want 15", got)
	}
	const text = "a {{ lines }} b {{ long }}"
	for offset, want := range map[int]int{0: 0, 2: 2, 4: 2, 6: 2, 7: 13, 10: 16, 30: 16, 1000: len(text)} {
		if got := scope.Written(text, offset); got != want {
			t.Errorf("%d of the replaced text is %d, want %d", offset, got, want)
		}
	}
}
