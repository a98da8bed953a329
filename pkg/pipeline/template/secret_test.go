// SPDX-License-Identifier: Apache-2.0

package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// secretive is an event with a secret of this value.
func secretive(t testing.TB, value string) *Scope {
	t.Helper()
	facts := known()
	facts.Secrets[SecretRef{"vault", "token"}] = value
	facts.Params = []Param{{Name: "secret", Secret: &SecretRef{"vault", "token"}}}
	return scope(t, facts)
}

// placed places placeholders as a manifest does, and returns it as JSON.
func placed(t testing.TB, s *Scope, texts ...string) []byte {
	t.Helper()
	tree := map[string]any{}
	for i, text := range texts {
		left := 1 << 20
		node, err := s.PlaceNode(text, &left)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		inside, err := s.Place("<"+text+">", &left)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		tree[strconv.Itoa(i)] = map[string]any{"node": node, "inside": inside}
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func manners() []string {
	return []string{
		"{{ secret }}", `{{ cel: secret }}`, `{{ cel: "a" + secret + "z" }}`, `{{ cel: [secret, "b", [secret]] }}`,
		`{{ cel: pac.secret }}`, `{{ cel: pac["secret"] }}`,
		`{{ body.title + secret }}`, `{{ cel: secret.size() }}`, `{{ cel: secret == "x" }}`,
		`{{ cel: ["x"].map(x, secret) }}`, `{{ cel: secret.split("") }}`, `{{ revision }}`,
	}
}

func TestSecretsArePlacedAsMarkers(t *testing.T) {
	s := secretive(t, token)
	data := placed(t, s, manners()...)
	if strings.Contains(string(data), token) {
		t.Errorf("the secret is in %s", data)
	}
	plain := secretive(t, token)
	for name := range plain.params {
		plain.params[name][0].Value, plain.params[name][0].Secret = token, nil // the same, not secret
	}
	var want, got any
	if err := json.Unmarshal(placed(t, plain, manners()...), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(Fill(data, s.Secrets()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("filled:\n%s", diff)
	}
}

func TestMarkersAreThoseOfThePlaceholderAndTheEvent(t *testing.T) {
	first, again, rotated := secretive(t, token), secretive(t, token), secretive(t, "another")
	data := placed(t, first, manners()...)
	if diff := cmp.Diff(string(data), string(placed(t, again, manners()...))); diff != "" {
		t.Errorf("another attempt:\n%s", diff)
	}
	if a, b := string(placed(t, first, "{{ secret }}")), string(placed(t, rotated, "{{ secret }}")); a != b {
		t.Errorf("the marker depends on the secret: %s, %s", a, b)
	}
	other := secretive(t, token)
	other.facts.Key = "other"
	if a, b := string(placed(t, first, "{{ secret }}")), string(placed(t, other, "{{ secret }}")); a == b {
		t.Errorf("two events have the marker %s", a)
	}
	const own = `{{ cel: git_auth_secret + secret }}`
	if a, b := string(placed(t, first.With("git_auth_secret", "a"), own)),
		string(placed(t, first.With("git_auth_secret", "b"), own)); a == b {
		t.Errorf("two runs with two values have the marker %s", a)
	}
}

func TestMoreSecretsThanAPlanCanKeepAreRefused(t *testing.T) {
	s := secretive(t, strings.Repeat("x", 1<<10))
	for i := range 100 {
		left := 1 << 20
		text := fmt.Sprintf("{{ cel: [secret, secret, secret, secret, secret, secret].join() + '%d' }}", i)
		if _, err := s.Place(text, &left); err != nil {
			if i < 50 || !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "more than 524288 bytes together") {
				t.Errorf("after %d: %v", i, err)
			}
			return
		}
	}
	t.Error("600 KiB are not refused")
}

func TestFillLeavesWhatItDoesNotKnow(t *testing.T) {
	const unknown = `{"a":"plumbline-secret-0123456789abcdef0123456789abcdef plumbline-secret-"}`
	m := markerPrefix + strings.Repeat("a", 32)
	secrets := map[string]string{m: "x " + m + ` "`}
	if got := string(Fill([]byte(unknown), secrets)); got != unknown {
		t.Errorf("%s", got)
	}
	if got, want := string(Fill([]byte(`"`+m+`"`), secrets)), `"x `+m+` \""`; got != want {
		t.Errorf("a value is read again: %s, want %s", got, want)
	}
	if !Held("x-"+m, secrets) || Held("plumbline-secret-0123456789abcdef0123456789abcdef", secrets) {
		t.Error("Held")
	}
}

func TestMask(t *testing.T) {
	m := markerPrefix + strings.Repeat("a", 32)
	const key = "-----BEGIN KEY-----\nabcdefgh12\nshort\nABCDEFGH34\n-----END KEY-----\n"
	tests := map[string]struct{ secret, text, want string }{
		"as it is":                     {token, "a " + token + "b", "a ***b"},
		"a marker":                     {token, "a " + m + " b", "a *** b"},
		"in JSON":                      {`a"b\c<d`, `{"x":"a\"b\\c\u003cd"}`, `{"x":"***"}`},
		"quoted by Go":                 {"a\"b\tc", strconv.Quote("a\"b\tc"), `"***"`},
		"in a query":                   {"a b/c&d", "https://x/?t=" + url.QueryEscape("a b/c&d"), "https://x/?t=***"},
		"in a path":                    {"a b/c&d", "https://x/" + url.PathEscape("a b/c&d"), "https://x/***"},
		"a value with space around it": {"  hunter2\n", "x hunter2 y", "x *** y"},
		"lines":                        {key, "log: abcdefgh12\nlog: ABCDEFGH34\nshort", "log: ***\nlog: ***\nshort"},
		"before a character that begins like an ellipsis": {"abcdefgh“x”", "abcdefgh…", "***…"},
		"a quoted value that was cut": {
			"a\tb " + token, strconv.Quote("a\tb " + token)[:15] + "…", `"***…`,
		},
		"all lines": {key, key, "***"},
		"a value that was cut": {token,
			"is " + token[:10] + "… (cut), " + token[:9] + " … and hunter2-is not", "is ***… (cut), *** … and hunter2-is not"},
		"a short one":       {"abc", "abc", "abc"},
		"one of four bytes": {"abcd", "xabcdx", "x***x"},
		"an empty one":      {"", "x", "x"},
		"nothing to hide":   {token, "x", "x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Mask(tt.text, map[string]string{m: tt.secret}); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if got := Mask("abcdefgh", map[string]string{"a": "abcd", "b": "abcdefgh", "c": "efgh"}); got != hidden {
		t.Errorf("the longest goes first: %q", got)
	}
	if got := Mask(token, nil); got != token {
		t.Errorf("without secrets: %q", got)
	}
}

func TestConceal(t *testing.T) {
	s := secretive(t, token)
	cause := fault.Throttledf("Why", time.Minute, "cannot read https://x/?t=%s", token)
	got := fault.Of(s.Conceal(fmt.Errorf("fetching: %w", cause)))
	if got.Class != fault.Throttled || got.Reason != "Why" || got.RetryAfter != time.Minute ||
		got.Message != "fetching: cannot read https://x/?t=***" {
		t.Errorf("%+v", got)
	}
	if errors.Unwrap(s.Conceal(cause)) != nil {
		t.Error("the cause still holds the secret")
	}
	unknown := fmt.Errorf("x: %w", &Unknown{Needs{Body: true}})
	plain := errors.New("plain")
	//nolint:errorlint // they are these very errors
	if s.Conceal(unknown) != unknown || s.Conceal(plain) != plain || s.Conceal(nil) != nil {
		t.Error("errors without a secret change")
	}
	if got := s.Params().Mask("on-target-branch [" + token + "]"); got != "on-target-branch [***]" {
		t.Errorf("a secret that was not placed: %s", got)
	}
}

// Whatever a secret is, the manifest does not depend on it, Fill puts it in, and Mask takes it out.
func FuzzSecret(f *testing.F) {
	for _, value := range []string{token, `"`, "a\nb\"c\\d", "{{ revision }}", "{{ secret }}", "\xff\xfe1234",
		"日本語テスト",
		"<script>&amp;", "plumbline-secret-", "\u2028\u20291234", "x: y\n- z", "0123", "true", " \n a \n "} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > 4096 {
			t.Skip("longer values take longer")
		}
		s := secretive(t, value)
		placeholders := []string{"{{ secret }}", `{{ cel: [secret, secret + "x"] }}`}
		data := placed(t, s, placeholders...)
		if diff := cmp.Diff(string(placed(t, secretive(t, token), placeholders...)), string(data)); diff != "" {
			t.Errorf("the manifest depends on the secret: %s", diff)
		}
		valid := strings.ToValidUTF8(value, "\ufffd")
		var filled map[string]map[string]any
		if err := json.Unmarshal(Fill(data, s.Secrets()), &filled); err != nil {
			t.Fatalf("filled: %v", err)
		}
		if filled["0"]["node"] != valid || filled["0"]["inside"] != "<"+valid+">" {
			t.Errorf("filled with %q: %v", value, filled)
		}
		if diff := cmp.Diff([]any{valid, valid + "x"}, filled["1"]["node"]); diff != "" {
			t.Error(diff)
		}
		if len(valid) < minSecret || strings.Contains(valid, "\x00") {
			return
		}
		secrets := map[string]string{"marker": valid}
		quoted := strconv.Quote(valid)
		for _, text := range []string{valid, quoted[1 : len(quoted)-1], inJSON(valid), url.QueryEscape(valid),
			url.PathEscape(valid)} {
			if masked := Mask("\x00"+text+"\x00", secrets); masked != "\x00"+hidden+"\x00" {
				t.Errorf("%q becomes %q", text, masked)
			}
		}
	})
}
