// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file has the texts by which an error is recognised if neither its code nor its reason tells,
// and the patterns of what varies between attempts, which are removed from messages.

// maxMessageBytes keeps conditions and checks far below the limits of etcd and of the Git services.
const maxMessageBytes = 16 << 10

func contains(text string, any ...string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
}

// isDenial: K7 (admission webhook) and K10 (ValidatingAdmissionPolicy).
func isDenial(text string) bool {
	return contains(text, "denied the request", "denied request:")
}

// echoesOutage: K9. A denial with one of these texts may be an outage of the webhook.
func echoesOutage(text string) bool {
	return contains(text,
		"connection refused", "no endpoints available for service", "context deadline exceeded", "i/o timeout",
		"TLS handshake timeout", "etcdserver:", "failed calling webhook",
		"the server is currently unable to handle the request", "connection reset by peer",
		"client rate limiter Wait", "no such host")
}

// isWebhookCall: K1 to K6, the webhook was not reached or its answer was not valid. It decides the
// reason only; the class comes from the code.
func isWebhookCall(text string) bool {
	return contains(text, `failed calling webhook "`, "conversion webhook for ")
}

// isUndecided: K3, the call may have been answered after we stopped listening.
func isUndecided(text string) bool {
	return contains(text, "context deadline exceeded", "i/o timeout", "EOF", "connection reset by peer",
		"request canceled", "Client.Timeout exceeded")
}

// isTooLarge: K27, the two 500s that never succeed.
func isTooLarge(text string) bool {
	return contains(text, "etcdserver: request is too large", "trying to send message larger than max")
}

// isStoreFull: K26.
func isStoreFull(text string) bool { return contains(text, "mvcc: database space exceeded") }

// isQuota: K13.
func isQuota(text string) bool {
	return contains(text, "exceeded quota:", "insufficient quota", "status unknown for quota")
}

// isNotReady: K17.
func isNotReady(text string) bool { return contains(text, "not yet ready to handle request") }

// isRBAC: K12, and the admission plug-in that requires rights on an object's owner.
func isRBAC(text string) bool {
	_, after, found := strings.Cut(text, `User "`)
	return found && strings.Contains(after, " cannot ") ||
		contains(text, "cannot set blockOwnerDeletion", "cannot set an ownerRef")
}

// isNoDryRun: K38.
func isNoDryRun(text string) bool { return contains(text, "does not support dry run") }

// isOwnLimit: K35, the request has not left the process.
func isOwnLimit(text string) bool { return contains(text, "client rate limiter Wait") }

// isStarted and isComplete: K37, Tekton's words.
func isStarted(text string) bool {
	return contains(text, "has started, only status updates are allowed")
}

func isComplete(text string) bool { return contains(text, "is complete, no updates are allowed") }

// isSecondaryLimit: G2 and G3.
func isSecondaryLimit(message, documentation string) bool {
	return strings.Contains(documentation, "secondary-rate-limits") ||
		strings.Contains(documentation, "abuse-rate-limits") ||
		contains(strings.ToLower(message), "secondary rate limit", "abuse detection")
}

// isUnknownCommit: G10, the commit has not reached the service's other stores yet.
func isUnknownCommit(text string) bool {
	return contains(strings.ToLower(text), "no commit found for sha")
}

// isTransition: L6.
func isTransition(text string) bool { return contains(text, "Cannot transition status") }

var webhookName = regexp.MustCompile(
	`failed calling webhook "([^"]+)"|admission webhook "([^"]+)"|(conversion webhook for [^,]+, Kind=\S+)`)

// WebhookName returns the name of the admission webhook an API server's message is about, in words
// for conversion webhooks, or "" if it names none.
func WebhookName(message string) string {
	for _, group := range webhookName.FindStringSubmatch(message) {
		if group != "" && !strings.HasPrefix(group, "failed ") && !strings.HasPrefix(group, "admission ") {
			return group
		}
	}
	return ""
}

var (
	// read tcp 10.0.0.1:54321->10.96.0.1:443: the first port is another one at each attempt.
	sourcePort = regexp.MustCompile(`(tcp|udp) (\S+):\d+->`)
	// x509: … current time 2026-01-02T03:04:05Z is after ….
	currentTime = regexp.MustCompile(`current time \S+ is `)
	// http2: … LastStreamID=1999, stream ID 17;.
	streamID = regexp.MustCompile(`(LastStreamID=|stream ID )\d+`)
	// exceeded quota: q, requested: a=1, used: a=5, limited: a=5: usage moves while we wait.
	quotaUsed = regexp.MustCompile(`, used: \S+, limited:`)
	// received invalid webhook response: expected response.uid="713a753e-…", got "": each question
	// has an id of its own.
	reviewUID = regexp.MustCompile(`expected response\.uid="[^"]*"`)
	// GitHub's invitation to quote a request id and a time.
	support = regexp.MustCompile(`\s*If you reach out to GitHub Support[^\n]*`)
	// Credentials in a URL.
	userinfo = regexp.MustCompile(`(https?://)[^/\s"'@]+@`)
	query    = regexp.MustCompile(`(https?://[^\s"'?]+)\?[^\s"']*`)
	// Tokens of GitHub and GitLab, JWTs, and anything that follows the word Bearer.
	token = regexp.MustCompile(
		`\b(gh[opsur]_|github_pat_|gl[a-z]{2,5}-)[A-Za-z0-9_.=-]{8,}|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+|\b[Bb]earer\s+[\w.=+/-]{8,}`,
	)
)

// stable removes the parts of an API server's message that vary between attempts.
func stable(message string) string {
	message = sourcePort.ReplaceAllString(message, "$1 $2->")
	message = currentTime.ReplaceAllString(message, "current time is ")
	message = streamID.ReplaceAllString(message, "${1}…")
	message = quotaUsed.ReplaceAllString(message, ", limited:")
	message = reviewUID.ReplaceAllString(message, `expected response.uid="…"`)
	message = userinfo.ReplaceAllString(message, "$1")
	return cut(strings.TrimSpace(message))
}

// scrub makes a Git service's message stable and free of anything that may be a credential.
func scrub(message string) string {
	message = support.ReplaceAllString(message, "")
	message = userinfo.ReplaceAllString(message, "$1")
	message = query.ReplaceAllString(message, "$1")
	message = token.ReplaceAllString(message, "[redacted]")
	return stable(message)
}

func cut(message string) string {
	if len(message) <= maxMessageBytes {
		return message
	}
	end := maxMessageBytes
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + " … (cut)"
}
