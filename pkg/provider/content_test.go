// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// A proxy's page with status 200 says nothing about the repository: the read is retried.
func TestTransportRetriesOtherMediaTypes(t *testing.T) {
	for _, c := range []struct {
		sentence, method, accept, kind, body, says string
	}{
		{"a log-in page", "GET", "application/vnd.github+json", "text/html; charset=utf-8", "<html>secret</html>",
			"answers text/html where JSON"},
		{"a page for a write may come after it was done", "POST", "application/json", "text/html", "<html>", "text/html"},
		{"JSON that is called text", "GET", "application/json", "text/plain", "{}", "text/plain"},
		{"no type at all", "GET", "application/json", "-", "{}", "something else"},
		{"a type that is no type is not repeated", "GET", "application/json", "s3cret" + strings.Repeat("x", 200) + "/html",
			"{}", "something else"},
		{"JSON", "GET", "application/json", "application/json; charset=utf-8", "{}", ""},
		{"JSON of a vendor", "GET", "application/json", "application/vnd.github.v3+json", "{}", ""},
		{"an empty body has no type", "DELETE", "application/json", "-", "", ""},
		{"raw text has the id of its blob instead", "GET", "application/vnd.github.v3.raw", "text/plain", "a: b", ""},
		{"raw text under the newer name", "GET", "application/vnd.github.raw+json", "text/plain", "a: b", ""},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				if c.kind != "-" {
					w.Header().Set("Content-Type", c.kind)
				}
				_, _ = w.Write([]byte(c.body))
			})
			req, err := http.NewRequestWithContext(t.Context(), c.method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", c.accept)
			resp, err := NewTransport(Limits{}).Within(local()).RoundTrip(req)
			if resp != nil {
				t.Cleanup(func() { _ = resp.Body.Close() })
			}
			f := fault.Of(err)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("%v, want the answer", err)
			case c.says != "" && (f == nil || f.Class != fault.Transient || f.Reason != ReasonBadAnswer ||
				!strings.Contains(f.Message, c.says)):
				t.Errorf("%+v, want a wait that says %q", f, c.says)
			case c.says != "" && (strings.Contains(f.Message, "s3cret") || f.Unknown != (c.method == "POST")):
				t.Errorf("%+v", f)
			}
		})
	}
}

// The ids are Git's: of "hello\n" as "git hash-object" computes it, and of the empty file.
func TestIsBlob(t *testing.T) {
	for id, text := range map[string]string{
		"ce013625030ba8dba906f756967f9e9ca394464a":                         "hello\n",
		"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391":                         "",
		"2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4": "hello\n",
	} {
		if !IsBlob(id, []byte(text)) {
			t.Errorf("%q is not %s", text, id)
		}
		if IsBlob(id, []byte(text+"x")) || IsBlob("", []byte(text)) || IsBlob(id[:39], []byte(text)) {
			t.Errorf("something else than %q is taken for %s", text, id)
		}
	}
}
