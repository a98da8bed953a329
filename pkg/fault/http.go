// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// SecondaryLimitWait is the least wait after a limit that names no time (GitHub's
	// documentation: "at least one minute").
	SecondaryLimitWait = time.Minute
	// resetMargin is added to a reset time, which has whole seconds.
	resetMargin = time.Second
	// maxLimitWait limits the wait that a header can require; GitHub's limits are reset within the
	// hour.
	maxLimitWait = 2 * time.Hour
)

// FromHTTP classifies a Git service's answer as docs/errors.md says: by status and headers, and by
// the body's text only where that page says so. resp is nil if there was no answer; body is what
// was read of it; err is what the client returned, if anything. It returns nil for 2xx, 202
// included, and for 3xx without err, except for a GraphQL answer that reports a rate limit (G4).
// Errors that have a class keep it.
//
// It never returns Invalid: the author is not to blame for what a Git service does not accept. A
// 404 is Operator; callers for whom it means "absent" test for it first. Reset times are relative
// to the answer's Date header, which has no clock skew, else to this machine's clock. Messages
// contain no URL query, no user info and no token.
func FromHTTP(resp *http.Response, body []byte, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return Of(err)
	}
	if resp == nil {
		return fromNoAnswer(err)
	}
	r := newReply(resp, body, err)
	if resp.StatusCode < http.StatusBadRequest {
		return r.unfinished()
	}
	return r.classify()
}

// fromNoAnswer: X1 and the transport half of G12.
func fromNoAnswer(err error) *Error {
	if err == nil {
		return nil
	}
	method, target, inner := "", "", err
	var failed *url.Error
	if errors.As(err, &failed) {
		method, inner = strings.ToUpper(failed.Op), failed.Err
		if u, parseErr := url.Parse(failed.URL); parseErr == nil {
			target = u.Host + u.Path
		}
	}
	reason := ReasonGitUnreachable
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		reason = ReasonCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		reason = ReasonTimeout
	}
	message := scrub(strings.TrimSpace(strings.TrimSpace(method+" "+target) + ": " + inner.Error()))
	return &Error{
		Class: Transient, Reason: reason, Message: strings.TrimPrefix(message, ": "),
		Unknown: method == "" || isWrite(method), cause: err,
	}
}

func isWrite(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// reply is one answer of a Git service.
type reply struct {
	resp  *http.Response
	said  said
	err   error
	write bool
	path  string
}

func newReply(resp *http.Response, body []byte, err error) *reply {
	r := &reply{resp: resp, said: parse(body), err: err, write: true}
	if resp.Request != nil {
		r.write = isWrite(resp.Request.Method)
		r.path = resp.Request.Method
		if resp.Request.URL != nil {
			r.path += " " + resp.Request.URL.Path
		}
	}
	return r
}

// unfinished: a 2xx or 3xx that is not a usable answer.
func (r *reply) unfinished() *Error {
	switch {
	case r.resp.StatusCode < http.StatusMultipleChoices && r.said.limited:
		return r.throttled(ReasonRateLimited, r.limit())
	case r.err == nil:
		return nil
	case r.resp.StatusCode >= http.StatusMultipleChoices && r.resp.StatusCode != http.StatusNotModified:
		return r.make(Operator, ReasonGitMoved,
			"the service redirects to another place; was the repository renamed or moved?")
	}
	f := fromNoAnswer(r.err)
	f.Unknown = r.write
	return f
}

func (r *reply) classify() *Error {
	code := r.resp.StatusCode
	switch {
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout:
		f := r.make(Transient, ReasonGitUnavailable, "")
		f.Unknown = r.write
		return f
	case code == http.StatusForbidden, code == http.StatusTooManyRequests:
		return r.refusedOrLimited()
	case code == http.StatusUnauthorized:
		return r.make(Operator, ReasonCredentialsRefused, "")
	case code == http.StatusNotFound:
		return r.make(Operator, ReasonNotFound, "it does not exist or the credentials may not see it")
	case code == http.StatusConflict:
		return r.make(Transient, ReasonGitConflict, "")
	case code == http.StatusGone, code == http.StatusUnavailableForLegalReasons:
		return r.make(Operator, ReasonGitGone, "")
	case isTransition(r.said.message):
		return r.make(Conflict, ReasonTransition, "")
	case isUnknownCommit(r.said.message):
		return r.make(Transient, ReasonCommitUnknown, "")
	}
	return r.make(Operator, ReasonGitRejected, "")
}

// refusedOrLimited: 403 and 429. G1, G2, G3, G6, L1, L3.
func (r *reply) refusedOrLimited() *Error {
	header := r.resp.Header
	exhausted := first(header, "X-RateLimit-Remaining", "RateLimit-Remaining") == "0"
	secondary := isSecondaryLimit(r.said.message, r.said.documentation)
	switch {
	case exhausted && !secondary:
		return r.throttled(ReasonRateLimited, max(r.limit(), r.retryAfter()))
	case secondary:
		return r.throttled(ReasonSecondaryRateLimited, r.secondaryWait(exhausted))
	case r.resp.StatusCode == http.StatusTooManyRequests && first(header, "RateLimit-Limit") != "":
		return r.throttled(ReasonRateLimited, r.gitlabWait())
	case r.resp.StatusCode == http.StatusTooManyRequests, r.retryAfter() > 0:
		return r.throttled(ReasonSecondaryRateLimited, r.secondaryWait(false))
	}
	hint := ""
	if needs := header.Get("X-Accepted-GitHub-Permissions"); needs != "" {
		hint = "the request needs the permissions " + needs
	}
	return r.make(Operator, ReasonPermissionMissing, hint)
}

// secondaryWait: Retry-After, else a minute; and no earlier than the primary limit if that is
// exhausted as well.
func (r *reply) secondaryWait(exhausted bool) time.Duration {
	wait := r.retryAfter()
	if wait <= 0 {
		wait = SecondaryLimitWait
	}
	if exhausted {
		wait = max(wait, r.limit())
	}
	return wait
}

// gitlabWait: L1, Retry-After, else RateLimit-Reset.
func (r *reply) gitlabWait() time.Duration {
	if wait := r.retryAfter(); wait > 0 {
		return wait
	}
	return r.limit()
}

// retryAfter reads seconds or a date; 0 if there is none.
func (r *reply) retryAfter() time.Duration {
	value := strings.TrimSpace(r.resp.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(r.now())+resetMargin, resetMargin)
}

// limit is the time until the limit's reset, or SecondaryLimitWait if none is named.
func (r *reply) limit() time.Duration {
	reset, err := strconv.ParseInt(first(r.resp.Header, "X-RateLimit-Reset", "RateLimit-Reset"), 10, 64)
	if err != nil {
		return SecondaryLimitWait
	}
	return max(time.Unix(reset, 0).Sub(r.now())+resetMargin, resetMargin)
}

func (r *reply) now() time.Time {
	if at, err := http.ParseTime(r.resp.Header.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}

func (r *reply) throttled(reason string, wait time.Duration) *Error {
	f := r.make(Throttled, reason, "")
	f.RetryAfter = min(wait, maxLimitWait)
	return f
}

// make writes "METHOD /path: 403 the service's message (hint)". GitLab's messages start with the
// code.
func (r *reply) make(class Class, reason, hint string) *Error {
	code := strconv.Itoa(r.resp.StatusCode) + " "
	words := strings.TrimPrefix(r.said.message, code)
	if words == "" {
		words = http.StatusText(r.resp.StatusCode)
	}
	message := strings.TrimSpace(code + words)
	if r.path != "" {
		message = r.path + ": " + message
	}
	if hint != "" {
		message += " (" + hint + ")"
	}
	cause := r.err
	if cause == nil {
		cause = fmt.Errorf("HTTP status %d", r.resp.StatusCode)
	}
	return &Error{Class: class, Reason: reason, Message: scrub(message), cause: cause}
}

func first(header http.Header, names ...string) string {
	for _, name := range names {
		if value := header.Get(name); value != "" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
