// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"strings"
	"testing"
)

// Shells, languages and services write a value in their own ways.
func TestMaskHidesWhatOtherProgramsWrite(t *testing.T) {
	t.Parallel()
	const word = "pass'word\"4 ü€/50%"
	for name, test := range map[string]struct{ value, log string }{
		"set -x of bash":       {"hunter2'hunter3", `+ login 'hunter2'\''hunter3'`},
		"set -x of dash":       {"hunter2'hunter3", `+ login 'hunter2'"'"'hunter3'`},
		"set -x, lines":        {"a'\"b\nc\\'d\"e", `+ login $'a\'"b\nc\\\'d"e'`},
		"printf %q":            {"hunter2 $x&y", `hunter2\ \$x\&y`},
		"export -p":            {"hunter2$x\"y`z", "declare -x A=\"hunter2\\$x\\\"y\\`z\""},
		"wrapped at a space":   {"hunter2 hunter3 hunter4", "hunter2 \nhunter3 \nhunter4"},
		"wrapped, no space":    {"hunter2 hunter3 hunter4", "hunter2\nhunter3\nhunter4"},
		"json.dumps of Python": {word, `"pass'word\"4 \u00fc\u20ac/50%"`},
		"JSON with emoji":      {"hunter2\U0001F600hunter3", `"hunter2\ud83d\ude00hunter3"`},
		"json_encode of PHP":   {"hunter2/hunter3", `"hunter2\/hunter3"`},
		"JSON in JSON":         {"hunter2\"hunter3\nx", `"{\"a\":\"hunter2\\\"hunter3\\nx\"}"`},
		"Go":                   {"hunter2\x01hunter3\u00a0", `"hunter2\x01hunter3\u00a0"`},
		"repr of Python":       {"hunter2'hunter3\xc3\xbc", `'hunter2\'hunter3\xc3\xbc'`},
		"encodeURIComponent":   {"hu!nt'er2(3)* $&", "https://x/?q=hu!nt'er2(3)*%20%24%26"},
		"quote of Python":      {"hunter2/hunter3 4+5", "hunter2/hunter3%204%2B5"},
		"lower case in a URL":  {"hunter2/hunter3=", "hunter2%2fhunter3%3d"},
		"a URL in a URL":       {"hunter2/hunter3=", "hunter2%252Fhunter3%253D"},
		"HTML":                 {"hunter2<&>\"'hunter3", "hunter2&lt;&amp;&gt;&quot;&#39;hunter3"},
		"HTML, other entities": {"hunter2<&>\"'hunter3", "hunter2&#60;&#x26;&gt;&#34;&apos;hunter3"},
	} {
		got := string(newMasker([]string{test.value}).mask([]byte("before "+test.log+" after"), false))
		for _, piece := range []string{"unter", "pass", "a'", "d\"", "er2", "word", `c\`} {
			if strings.Contains(got, piece) {
				t.Errorf("%s: %q is shown as %q", name, test.log, got)
				break
			}
		}
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, hidden) {
			t.Errorf("%s: %q is shown as %q", name, test.log, got)
		}
	}
}

// Tools such as tput divide a value by escape sequences of several forms.
func TestMaskKnowsEscapeSequences(t *testing.T) {
	t.Parallel()
	for _, sequence := range []string{
		"\x1b(B\x1b[m", "\x1b7", "\x1b=", "\x1bc", "\x1b#8", "\x1bPq#0\x1b\\", "\x1b_x\x1b\\", "\x1b[1;31m", "\x1b]8;;http://x\x1b\\",
	} {
		log := "FAIL" + sequence + " hun" + sequence + "ter2"
		if got := string(newMasker([]string{"hunter2"}).mask([]byte(log), false)); got != "FAIL *****" {
			t.Errorf("%q: %q", sequence, got)
		}
	}
}

func TestMaskHidesWrappedTokens(t *testing.T) {
	t.Parallel()
	const token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzIl19.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
	for _, width := range []int{10, 20, 40, 76} {
		var lines []string
		for rest := token; rest != ""; rest = rest[min(width, len(rest)):] {
			lines = append(lines, rest[:min(width, len(rest))])
		}
		got := string(newMasker(nil).mask([]byte("the token:\n"+strings.Join(lines, "\n")+"\n\nthe end."), false))
		if !strings.HasPrefix(got, "the token:\n") || strings.Contains(got, "eyJ") || strings.Contains(got, "c2ln") {
			t.Errorf("%d: %q", width, got)
		}
	}
}
