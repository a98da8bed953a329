// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// inBase64 is how many characters of base64 have four bytes.
const inBase64 = 6

// canary returns a value that no log has by chance.
func canary(random *rand.Rand) string {
	const letters = `abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$%&/()=?{}[]+*-_.:,;<>|"'\ü€`
	runes, value := []rune(letters), "Z9"
	for range 6 + random.IntN(60) {
		value += string(runes[random.IntN(len(runes))])
		if random.IntN(25) == 0 {
			value += "\n"
		}
	}
	return value + "Q7"
}

// encodings are what programs print a value as.
var encodings = map[string]func(random *rand.Rand, value string) string{
	"as it is": func(_ *rand.Rand, v string) string { return v },
	"base64":   func(_ *rand.Rand, v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64 of more": func(random *rand.Rand, v string) string {
		return base64.StdEncoding.EncodeToString(
			[]byte(strings.Repeat("u", random.IntN(9)) + v + strings.Repeat("x", random.IntN(9))),
		)
	},
	"base64 for URLs": func(random *rand.Rand, v string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("u", random.IntN(9)) + v))
	},
	"JSON": func(_ *rand.Rand, v string) string {
		data, _ := json.Marshal(map[string]string{"k": v})
		return string(data)
	},
	"URL": func(_ *rand.Rand, v string) string { return "https://host/?a=" + url.QueryEscape(v) + "&b=c" },
	"Go":  func(_ *rand.Rand, v string) string { return fmt.Sprintf("%q", v) },
}

// breaks are what may divide a value.
var breaks = []string{
	"", "\n", "\r\n", "\n    ", " \n", "\x1b[0m", "\x1b[31;1m", "\u200b", "\x00", "\n\n", "\x1b]0;title\x07",
}

// divided puts breaks into a text.
func divided(random *rand.Rand, text string) string {
	between := breaks[random.IntN(len(breaks))]
	if between == "" {
		return text
	}
	var out strings.Builder
	width := 1 + random.IntN(20)
	for i, r := range []rune(text) {
		if i > 0 && i%width == 0 {
			out.WriteString(between)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// piece returns a piece of n bytes of a value that a text has, whatever divides it.
func piece(n int, value, text string) string {
	text = string(joined(cleaned([]byte(text)), false).text)
	value = string(joined(cleaned([]byte(value)), false).text)
	for i := 0; i+n <= len(value); i++ {
		if strings.Contains(text, value[i:i+n]) {
			return value[i : i+n]
		}
	}
	return ""
}

// noise has none of the four bytes in a row that a canary has.
func noise(random *rand.Rand, n int) string {
	var out strings.Builder
	for out.Len() < n {
		out.WriteString([]string{"~~ ~~ ~~\n", "~~~~~~~~~~~", "\n", "##~## ~\r", "\xff\xfe", "~ ~\x1b[0m~"}[random.IntN(6)])
	}
	return out.String()
}

func TestMaskHidesCanaries(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for _, name := range slices.Sorted(maps.Keys(encodings)) { // in one order, so that a seed can be repeated
		encode := encodings[name]
		for range 100 {
			value := canary(random)
			shown := encode(random, value)
			log := noise(random, random.IntN(200)) + "~" + divided(random, shown) + "~" + noise(random, random.IntN(200))
			got := string(newMasker([]string{"another value", value}).mask([]byte(log), false))
			if found := piece(inBase64, shown, strings.ReplaceAll(got, hidden, "")); found != "" && !neighbour(name) {
				t.Fatalf("seed %d: %s: %q of %q is in %q (log %q)", seed, name, found, value, got, log)
			}
			if decoded := fromBase64(got); piece(minSecret, value, decoded) != "" {
				t.Fatalf("seed %d: %s: %q can be decoded to %q, which has a piece of %q", seed, name, got, decoded, value)
			}
			if !strings.Contains(got, hidden) {
				t.Fatalf("seed %d: %s: nothing is hidden in %q", seed, name, got)
			}
		}
	}
}

// neighbour reports whether an encoding shows more than the value.
func neighbour(name string) bool { return name != "as it is" && name != "base64" }

// fromBase64 returns what base64 in a text says, at each offset.
func fromBase64(text string) (all string) {
	text = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(string(joined(cleaned([]byte(text)), false).text))
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		return r > 'z' || !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", r)
	}) {
		for offset := range min(4, len(part)) {
			plain, _ := base64.RawStdEncoding.DecodeString(part[offset:])
			all += string(plain) + "\n\n"
		}
	}
	return all
}

// A log may begin and end within a value, because its beginning is not read.
func TestMaskHidesPiecesAtTheEdges(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		value := canary(random)
		encode, n := encodings["as it is"], minSecret
		if random.IntN(2) == 0 {
			encode, n = encodings["base64"], inBase64
		}
		shown := divided(random, encode(random, value))
		cut := random.IntN(len(shown))
		for _, log := range []string{shown[cut:] + "~~\n~~", "~~\n~~" + shown[:cut], shown[cut/2 : cut]} {
			got := string(newMasker([]string{value}).mask([]byte(log), true))
			if found := piece(n, encode(random, value), strings.ReplaceAll(got, hidden, "~")); found != "" {
				t.Fatalf("seed %d: %q of %q is in %q (log %q)", seed, found, value, got, log)
			}
		}
	}
}

func TestMaskHidesWhatIsInAValue(t *testing.T) {
	t.Parallel()
	login := base64.StdEncoding.EncodeToString([]byte("robot:hunter2hunter2"))
	docker := `{"auths":{"registry.example":{"auth":"` + login + `"}}}`
	pem := "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n"
	m := newMasker([]string{docker, pem})
	for _, log := range []string{
		"login " + login, "password hunter2hunter2", "robot:hunter2hunter2", "a line: BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj.",
		"eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzIl19.c2lnbmF0dXJlLXNpZ25hdHVyZQ",
		"ghs_16C7e42F292c6912E7710c838347Ae178B4a", "glpat-abcdefghij0123456789",
	} {
		got := string(m.mask([]byte(log), false))
		for _, secret := range []string{"hunter2", login, "BKcwgg", "eyJ", "c2lnbmF0dXJl", "16C7e42F", "abcdefghij"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q becomes %q", log, got)
			}
		}
	}
}

func TestMaskLeavesOtherText(t *testing.T) {
	t.Parallel()
	m := newMasker([]string{"", "a", "abc", "\n\n\n\n", "xyz\n", "secret-value", "test"})
	for log, want := range map[string]string{
		"":                            "",
		"abc a xyz":                   "abc a xyz",
		"a secret-value here\n":       "a ***** here\n",
		"secret-valuesecret-value":    "*****",
		"tests in test/e2e":           "*****s in *****/e2e",
		"a secret-\nvalue here":       "a ***** here",
		"secret-values secret-valu !": "*****s secret-valu !",
		"\x1b[31mFAIL\x1b[0m \x07e\n": "FAIL e\n",
		"ghs_16C7e42F292c6912E7710c838347Ae178B4a\nFAIL\n": "*****\nFAIL\n",
	} {
		if got := string(m.mask([]byte(log), false)); got != want {
			t.Errorf("%q becomes %q, want %q", log, got, want)
		}
	}
}

func FuzzMaskedLinesAreValidText(f *testing.F) {
	f.Add("\xff\xfe\x00 binary", "value", 3, 100)
	f.Add("10%\r20%\r30%\r\ndone\n\n", "2", 1, 3)
	f.Add("\x1b[31mred\x1b]0;\x07", "€€€€", 1, 4)
	f.Fuzz(func(t *testing.T, log, value string, lines, limit int) {
		lines, limit = 1+max(0, lines)%200, max(0, limit)%10_000
		got := lastLines(linesOf(newMasker([]string{value}).mask([]byte(log), false)), lines, limit)
		if !utf8.ValidString(got) || strings.Count(got, "\n") >= lines || v1alpha1.Length(got) > limit+len("… ") ||
			strings.ContainsAny(got, "\x1b\x00\r") {
			t.Errorf("%q is shown as %q", log, got)
		}
		if len(value) >= minSecret && strings.Contains(got, value) && !strings.Contains(hidden, value) {
			t.Errorf("%q shows %q", got, value)
		}
	})
}
