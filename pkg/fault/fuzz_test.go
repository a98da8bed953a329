// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// nested is an answer whose message is so many levels deep.
func nested(levels int) string {
	return `{"message":` + strings.Repeat("[", levels) + `"` + strings.Repeat("x", 100_000) + `"` + strings.Repeat("]",
		levels) + "}"
}

func TestDeeplyNestedAnswerIsReadFast(t *testing.T) {
	start := time.Now()
	parse([]byte(nested(9000)))
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if got := parse([]byte(`{"message":{"base":["is too long",["at all"]]}}`)).message; got != "base is too long, at all" {
		t.Errorf("message %q", got)
	}
}

// Whatever a Git service answers, it is never the author's fault, says a bounded text, and never
// asks to wait for ever.
func FuzzFromHTTP(f *testing.F) {
	for _, body := range []string{
		"", "null", "[]", "<html>", `{"message":"Not Found","documentation_url":"https://docs.github.com"}`,
		`{"message":{"base":["is too long"]}}`,
		`{"errors":[{"type":"RATE_LIMITED"}]}`, `{"errors":[{"resource":"x","code":"y"},"z",[["a"]]]}`,
		`{"error":"invalid_token","error_description":"https://u:p@h/x?token=y"}`,
		`{"message":"You have exceeded a secondary rate limit"}`, "{\"message\":\"\xff\\ud800\"}",
	} {
		for _, code := range []int{200, 304, 401, 403, 404, 409, 422, 429, 500, 503} {
			f.Add(code, body, "60")
			f.Add(code, body, "-1")
		}
		f.Add(403, body, "99999999999999999999")
	}
	f.Fuzz(func(t *testing.T, code int, body, header string) {
		h := http.Header{}
		for _, name := range []string{"Retry-After", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Reset", "Date",
			"Content-Type"} {
			h.Set(name, header)
		}
		got := FromHTTP(&http.Response{StatusCode: code, Header: h}, []byte(body), nil)
		switch {
		case got == nil && code >= http.StatusBadRequest:
			t.Errorf("%d %q is no fault", code, body)
		case got == nil:
		case got.Class == Invalid, got.RetryAfter < 0, got.RetryAfter > maxLimitWait, got.Reason == "":
			t.Errorf("%d %q gives %+v", code, body, got)
		case len(got.Message) > maxMessageBytes+64, utf8.ValidString(body) && !utf8.ValidString(got.Message):
			t.Errorf("%d gives the message %q", code, got.Message)
		}
	})
}
