// SPDX-License-Identifier: Apache-2.0

package canary_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/canary"
)

const secret = `s3cr"t/+of a {test}?&`

// A secret is found in every form in which a program may tell it, wherever it stands.
func TestSecretIsFoundInEveryForm(t *testing.T) {
	var secrets canary.Secrets
	secrets.Add(secret, "a/b c")
	logged, err := json.Marshal(map[string]string{"error": fmt.Sprintf("asking %q", secret)})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"plain": "token=" + secret, "alone": secret, "in a query": "https://x/?t=" + url.QueryEscape(secret),
		"in a path":               "https://x/" + url.PathEscape(secret) + "/y",
		"as a password":           (&url.URL{Scheme: "https", Host: "x", User: url.UserPassword("git", secret)}).String(),
		"quoted in a log of JSON": string(logged),
	}
	for before := range 4 {
		text := strings.Repeat("u", before) + secret + ":after"
		texts[fmt.Sprintf("in base64 after %d bytes", before)] = "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
		texts[fmt.Sprintf("in base64 for URLs after %d bytes", before)] = "?" +
			base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	for name, text := range texts {
		found := secrets.Find(text)
		if len(found) == 0 || !slices.Equal(found[0].Origins, []string{"a/b c"}) {
			t.Errorf("%s: %v is found in %q", name, found, text)
		}
	}
	for _, innocent := range []string{"", secret[:len(secret)-1], secret[1:], strings.ToUpper(secret),
		strings.Repeat("x", 1000)} {
		if found := secrets.Find(innocent); len(found) != 0 {
			t.Errorf("%v is found in %q", found, innocent)
		}
	}
}

// A key is found by any of its lines; where it is kept is remembered, once; what is too short is
// not looked for.
func TestLinesAndShortValues(t *testing.T) {
	var secrets canary.Secrets
	const key = "-----BEGIN PRIVATE KEY-----\nfirst-line-of-the-key\nsecond-line-of-the-key\n-----END PRIVATE KEY-----\n"
	secrets.Add(key, "one")
	secrets.Add(key, "two")
	secrets.Add(key, "two")
	secrets.Add("12345", "three")
	if got := secrets.Len(); got != 2 {
		t.Errorf("%d secrets, want the two lines", got)
	}
	found := secrets.Find(
		"a log with second-line-of-the-key, second-line-of-the-key and 12345, -----BEGIN PRIVATE KEY-----")
	if len(found) != 1 || !slices.Equal(found[0].Origins, []string{"one", "two"}) || found[0].Form != "as it is" {
		t.Errorf("found %v, want the second line, once", found)
	}
}
