// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/status"
)

// testTexts: every text is accepted, and a text that is cut is cut between characters and says so.
func testTexts(t *testing.T, open func(*testing.T) Env) {
	texts := map[string]string{
		"ASCII":         "x",
		"two bytes":     "ü",
		"three bytes":   "世",
		"four bytes":    "🚀",
		"not UTF-8":     "\xff\xfe",
		"NUL":           "\x00",
		"right to left": "\u202etxt",
		"markup":        "<script>alert(1)</script>\n",
		"fences":        "\n```\n",
		"combined":      "e\u0301\u200d",
	}
	for name, unit := range texts {
		t.Run(name, func(t *testing.T) {
			r := report(t, open(t))
			most := max(r.MaxTitle, r.MaxText)
			for _, repeat := range []int{1, most / len(unit), most/len(unit) + 1, most, most + 1, 3 * most} {
				testText(t, r, strings.Repeat(unit, repeat))
			}
		})
	}
	t.Run("empty texts and addresses that are none", func(t *testing.T) { testEmptyTexts(t, open(t)) })
}

func testText(t *testing.T, r reporting, sent string) {
	t.Helper()
	check := running()
	check.Title, check.Summary, check.Text = sent, sent, sent
	r.put(t, "", check)
	got := r.only(t)
	if !utf8.ValidString(got.Title) || r.Length(got.Title) > r.MaxTitle || got.Title == "" ||
		strings.Contains(got.Title, "\n") {
		t.Errorf("%d bytes: the title is %q", len(sent), got.Title)
	}
	if r.MaxText == 0 {
		return
	}
	for field, text := range map[string]string{"summary": got.Summary, "text": got.Text} {
		if !utf8.ValidString(text) || r.Length(text) > r.MaxText || (text == "" && field != "text") {
			t.Errorf("%d bytes: the %s has %d, valid %t", len(sent), field, r.Length(text), utf8.ValidString(text))
		}
	}
	if cut := r.Length(strings.ToValidUTF8(sent, "\uFFFD")) > r.MaxText; cut && !strings.Contains(got.Text, "cut") {
		t.Errorf("%d bytes: the text does not say that it was cut", len(sent))
	}
}

func testEmptyTexts(t *testing.T, w Env) {
	r := report(t, w)
	for _, url := range []string{"", "javascript:alert(1)", "dashboard.is.not.configured", "https://", "http://%zz",
		"ftp://x/y", "https://" + strings.Repeat("x", 5000)} {
		check := status.Check{Key: "k", Name: "n", ExternalID: "e", State: status.Queued, DetailsURL: url}
		r.put(t, "", check)
		if got := r.only(t); got.Title == "" || (r.MaxText > 0 && got.Summary == "") || (url != "" && got.DetailsURL == url) {
			t.Errorf("%q: got %+v", url, got)
		}
	}
}
