// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/status"
)

// testTexts: no text keeps a check from being accepted, and what is cut is cut between characters, and says so.
func testTexts(t *testing.T, open func(*testing.T) World) {
	texts := map[string]string{
		"ASCII": "x", "two bytes": "ü", "three bytes": "世", "four bytes": "🚀", "not UTF-8": "\xff\xfe", "NUL": "\x00",
		"right to left": "\u202etxt", "markup": "<script>alert(1)</script>\n", "fences": "\n```\n", "combined": "e\u0301\u200d",
	}
	for name, unit := range texts {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			r := report(t, w)
			for _, repeat := range []int{1, w.MaxText / len(unit), w.MaxText/len(unit) + 1, 3 * w.MaxText / len(unit)} {
				check := running()
				check.Title, check.Summary, check.Text = strings.Repeat(unit, repeat), strings.Repeat(unit, repeat), strings.Repeat(unit, repeat)
				r.put(t, "", check)
				got := r.only(t)
				for field, text := range map[string]string{"title": got.Title, "summary": got.Summary, "text": got.Text} {
					if !utf8.ValidString(text) || len(text) > w.MaxText || (text == "" && field != "text") {
						t.Errorf("%d times: the %s has %d bytes, valid %t", repeat, field, len(text), utf8.ValidString(text))
					}
				}
				if strings.Contains(got.Title, "\n") {
					t.Errorf("the title has more than one line: %q", got.Title)
				}
				if cut := len(strings.ToValidUTF8(check.Text, "\uFFFD")) > w.MaxText; cut && !strings.Contains(got.Text, "cut") {
					t.Errorf("%d times: the text does not say that it was cut", repeat)
				}
			}
		})
	}
	t.Run("empty texts and addresses that are none", func(t *testing.T) {
		r := report(t, open(t))
		for _, url := range []string{"", "javascript:alert(1)", "dashboard.is.not.configured", "https://", "http://%zz", "ftp://x/y", "https://" + strings.Repeat("x", 5000)} {
			check := status.Check{Key: "k", Name: "n", ExternalID: "e", State: status.Queued, DetailsURL: url}
			r.put(t, "", check)
			if got := r.only(t); got.Title == "" || got.Summary == "" || (url != "" && got.DetailsURL == url) {
				t.Errorf("%q: got %+v", url, got)
			}
		}
	})
}
