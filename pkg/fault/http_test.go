// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The Date header of every answer below, and the same instant as epoch seconds.
const date, epoch = "Thu, 01 Jan 2026 00:00:00 GMT", 1767225600

type httpCase struct {
	name    string
	method  string
	code    int
	headers string
	body    string
	err     error
	want    *Error
}

func (c httpCase) response() *http.Response {
	resp := &http.Response{StatusCode: c.code, Header: http.Header{"Date": {date}}}
	resp.Request = &http.Request{Method: c.method,
		URL: &url.URL{Scheme: "https", Host: "api.github.com", Path: "/x", RawQuery: "private_token=glpat-abcdefgh12345"}}
	for line := range strings.SplitSeq(c.headers, "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok {
			resp.Header.Set(key, value)
		}
	}
	return resp
}

func checkHTTP(t *testing.T, cases []httpCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := FromHTTP(c.response(), []byte(c.body), c.err)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Error{})); diff != "" {
				t.Errorf("FromHTTP (-want +got):\n%s", diff)
			}
		})
	}
	if time.Unix(epoch, 0).UTC().Format(http.TimeFormat) != date {
		t.Error("the table's epoch and date differ")
	}
}

func TestFromHTTPLimits(t *testing.T) {
	const documentation = `"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"`
	checkHTTP(t, []httpCase{
		{"G1: the primary limit as 403 is waited for until the reset", "GET", 403,
			"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225900",
			`{"message":"API rate limit exceeded for installation ID 1. If you reach out to GitHub Support for help, please include the request ID AA:BB and timestamp 2026-01-01 00:00:00 UTC."}`, nil,
			&Error{Class: Throttled, Reason: "RateLimited", RetryAfter: 301 * time.Second,
				Message: "GET /x: 403 API rate limit exceeded for installation ID 1."}},
		{"G1: the primary limit as 429 is the same", "POST", 429, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225900",
			`{"message":"API rate limit exceeded"}`, nil,
			&Error{Class: Throttled, Reason: "RateLimited", RetryAfter: 301 * time.Second,
				Message: "POST /x: 429 API rate limit exceeded"}},
		{"G1: a reset in the past still waits the margin", "GET", 403,
			"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225000", `{}`, nil,
			&Error{Class: Throttled, Reason: "RateLimited", RetryAfter: time.Second, Message: "GET /x: 403 Forbidden"}},
		{"G1: a reset in a year is not believed", "GET", 403, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1799999999", `{}`,
			nil,
			&Error{Class: Throttled, Reason: "RateLimited", RetryAfter: 2 * time.Hour, Message: "GET /x: 403 Forbidden"}},
		{"G2: the secondary limit waits for Retry-After", "POST", 403, "Retry-After: 90\nX-RateLimit-Remaining: 4000",
			`{"message":"You have exceeded a secondary rate limit",` + documentation + `}`, nil,
			&Error{Class: Throttled, Reason: "SecondaryRateLimited", RetryAfter: 90 * time.Second,
				Message: "POST /x: 403 You have exceeded a secondary rate limit"}},
		{"G2: without Retry-After it waits a minute", "POST", 429, "", `{"message":"slow",` + documentation + `}`, nil,
			&Error{Class: Throttled, Reason: "SecondaryRateLimited", RetryAfter: time.Minute, Message: "POST /x: 429 slow"}},
		{"G2: Retry-After may be a date", "POST", 429, "Retry-After: Thu, 01 Jan 2026 00:02:00 GMT", ``, nil,
			&Error{Class: Throttled, Reason: "SecondaryRateLimited", RetryAfter: 121 * time.Second,
				Message: "POST /x: 429 Too Many Requests"}},
		{"G3: the message alone tells the secondary limit", "POST", 403, "",
			`{"message":"You have exceeded a secondary rate limit."}`, nil,
			&Error{Class: Throttled, Reason: "SecondaryRateLimited", RetryAfter: time.Minute,
				Message: "POST /x: 403 You have exceeded a secondary rate limit."}},
		{"G3: it waits for the primary limit's reset when that is used up too", "POST", 403,
			"X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1767225900\nRetry-After: 60", `{"message":"secondary rate limit"}`,
			nil,
			&Error{Class: Throttled, Reason: "SecondaryRateLimited", RetryAfter: 301 * time.Second,
				Message: "POST /x: 403 secondary rate limit"}},
		{"G4: GraphQL reports its limit in a 200", "POST", 200, "X-RateLimit-Reset: 1767225660",
			`{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`, nil,
			&Error{Class: Throttled, Reason: "RateLimited", RetryAfter: 61 * time.Second,
				Message: "POST /x: 200 API rate limit exceeded"}},
		{"L1: GitLab's 429 waits for Retry-After", "POST", 429,
			"Retry-After: 30\nRateLimit-Limit: 60\nRateLimit-Reset: 1767225700", ``, nil,
			&Error{
				Class: Throttled, Reason: "RateLimited", RetryAfter: 30 * time.Second, Message: "POST /x: 429 Too Many Requests",
			}},
		{"L1: else for RateLimit-Reset", "POST", 429, "RateLimit-Limit: 60\nRateLimit-Reset: 1767225630", ``, nil,
			&Error{
				Class: Throttled, Reason: "RateLimited", RetryAfter: 31 * time.Second, Message: "POST /x: 429 Too Many Requests",
			}},
	})
}

func TestFromHTTPRefusals(t *testing.T) {
	checkHTTP(t, []httpCase{
		{"G5: 401 means the credentials are refused", "GET", 401, "", `{"message":"Bad credentials"}`, nil,
			&Error{Class: Operator, Reason: "CredentialsRefused", Message: "GET /x: 401 Bad credentials"}},
		{"G6: 403 names the permission GitHub wants", "POST", 403,
			"X-RateLimit-Remaining: 4000\nX-Accepted-GitHub-Permissions: checks=write",
			`{"message":"Resource not accessible by integration"}`, nil,
			&Error{Class: Operator, Reason: "PermissionMissing",
				Message: "POST /x: 403 Resource not accessible by integration (the request needs the permissions checks=write)"}},
		{"G7, G8: a 404 without an interpretation is the operator's", "GET", 404, "X-RateLimit-Remaining: 0",
			`{"message":"Not Found"}`, nil,
			&Error{Class: Operator, Reason: "NotFound",
				Message: "GET /x: 404 Not Found (it does not exist or the credentials may not see it)"}},
		{"G8: a redirect the client did not follow is the operator's", "POST", 301, "", `{"message":"Moved Permanently"}`,
			errors.New("301"),
			&Error{Class: Operator, Reason: "MovedAtGitService", Message: "POST /x: 301 Moved Permanently (the service redirects to another place; was the repository renamed or moved?)"}},
		{"G9: an empty repository is transient", "GET", 409, "", `{"message":"Git Repository is empty."}`, nil,
			&Error{Class: Transient, Reason: "GitServiceConflict", Message: "GET /x: 409 Git Repository is empty."}},
		{"G10: a commit that is not known yet is transient", "POST", 422, "", `{"message":"No commit found for SHA: 1234"}`,
			nil,
			&Error{Class: Transient, Reason: "CommitUnknown", Message: "POST /x: 422 No commit found for SHA: 1234"}},
		{"G10: every other 422 is ours, never the author's", "POST", 422, "",
			`{"message":"Validation Failed","errors":[{"resource":"CheckRun","field":"title","code":"missing_field"},"Only 65535 characters"]}`, nil,
			&Error{Class: Operator, Reason: "RejectedByGitService",
				Message: "POST /x: 422 Validation Failed: CheckRun title missing_field: Only 65535 characters"}},
		{"G12: a 502 to a POST leaves the outcome unknown and its HTML out", "POST", 502, "", `<html>unicorn</html>`, nil,
			&Error{Class: Transient, Reason: "GitServiceUnavailable", Message: "POST /x: 502 Bad Gateway", Unknown: true}},
		{"G12: a 500 to a GET has no outcome", "GET", 500, "", ``, nil,
			&Error{Class: Transient, Reason: "GitServiceUnavailable", Message: "GET /x: 500 Internal Server Error"}},
		{"G13: 451 is the operator's", "GET", 451, "", `{"message":"Repository access blocked"}`, nil,
			&Error{Class: Operator, Reason: "GoneAtGitService", Message: "GET /x: 451 Repository access blocked"}},
		{"L2: GitLab's 401 is the operator's", "GET", 401, "",
			`{"error":"invalid_token","error_description":"Token was revoked."}`, nil,
			&Error{Class: Operator, Reason: "CredentialsRefused", Message: "GET /x: 401 invalid_token: Token was revoked."}},
		{"L3: GitLab's 403 on a fork is the operator's", "POST", 403, "", `{"message":"403 Forbidden"}`, nil,
			&Error{Class: Operator, Reason: "PermissionMissing", Message: "POST /x: 403 Forbidden"}},
		{"L5: GitLab's 409 asks for a retry", "POST", 409, "", `{"message":"409 Conflict"}`, nil,
			&Error{Class: Transient, Reason: "GitServiceConflict", Message: "POST /x: 409 Conflict"}},
		{"L6: a transition GitLab refuses is read back", "POST", 400, "",
			`{"message":"Cannot transition status via :run from :running (Reason(s): Status cannot transition via \"run\")"}`,
			nil,
			&Error{Class: Conflict, Reason: "StatusTransition", Message: `POST /x: 400 Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")`}},
		{"L7: GitLab's maintenance is transient", "POST", 503, "Retry-After: 60", `{"message":{"base":["read-only"]}}`, nil,
			&Error{Class: Transient, Reason: "GitServiceUnavailable", Message: "POST /x: 503 base read-only", Unknown: true}},
		{"a write whose 201 could not be read may have been applied", "POST", 201, "", ``, errors.New("unexpected EOF"),
			&Error{Class: Transient, Reason: "GitServiceUnreachable", Message: "unexpected EOF", Unknown: true}},
		{"a 201 is no fault", "POST", 201, "", `{"message":"x"}`, nil, nil},
		{"a 304 is no fault", "GET", 304, "", ``, nil, nil},
	})
}

func TestFromHTTPWithoutAnswer(t *testing.T) {
	leaky := &url.Error{
		Op: "Post", URL: "https://user:secret@git.example.com/x?access_token=ghs_0123456789abcdef", Err: syscall.ECONNREFUSED,
	}
	cases := []struct {
		name string
		err  error
		want *Error
	}{
		{"nothing happened", nil, nil},
		{"X1: a refused POST leaves the outcome unknown and the credentials out", leaky,
			&Error{Class: Transient, Reason: "GitServiceUnreachable", Message: "POST git.example.com/x: connection refused",
				Unknown: true}},
		{"X1: a GET that timed out", &url.Error{Op: "Get", URL: "https://git.example.com/x", Err: context.DeadlineExceeded},
			&Error{Class: Transient, Reason: "Timeout", Message: "GET git.example.com/x: context deadline exceeded"}},
		{"our own shutdown", context.Canceled,
			&Error{Class: Transient, Reason: "Canceled", Message: "context canceled", Unknown: true}},
		{"a fault keeps its class", Operatorf("X", "no key"), &Error{Class: Operator, Reason: "X", Message: "no key"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := FromHTTP(nil, nil, c.err)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Error{})); diff != "" {
				t.Errorf("FromHTTP (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		"token ghs_0123456789abcdefghij refused":               "token [redacted] refused",
		"github_pat_11ABCDEFG0123456789":                       "[redacted]",
		"glpat-abcdefgh12345678 is expired":                    "[redacted] is expired",
		"Authorization: Bearer abc.def-123456":                 "Authorization: [redacted]",
		"https://x-access-token:ghs_012345678@github.com/a/b ": "https://github.com/a/b",
		"see https://h/p?private_token=1 now":                  "see https://h/p now",
	} {
		if got := scrub(in); got != want {
			t.Errorf("scrub(%q) = %q, want %q", in, got, want)
		}
	}
}
