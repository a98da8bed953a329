// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"regexp"
	"slices"
	"strings"
)

// These patterns choose the words of a report. They never change a conclusion.
var (
	// Tekton v1.15.0 pkg/reconciler/taskrun/taskrun.go, handlePodCreationError.
	podCreation = regexp.MustCompile(`(?s)^failed to create task run pod "[^"]*": (.*)$`)
	taskHint    = regexp.MustCompile(`\.? (Maybe (?:missing or invalid Task (\S+?)|invalid TaskSpec))\.?$`)

	// The API server's words: k8s.io/apiserver pkg/authz/plugin/webhook/errors and its webhook
	// conversion.
	admissionCall  = regexp.MustCompile(`(?s)failed calling webhook "([^"]*)": (?:failed to call webhook: )?(.*)$`)
	conversionCall = regexp.MustCompile(`(?s)conversion webhook for (\S+, Kind=\S+) failed: (.*)$`)
	posted         = regexp.MustCompile(`(?s)^(?:Post|Get) "?([^"\s]+?)"?: (.*)$`)
	denial         = regexp.MustCompile(
		`(?s)admission webhook "([^"]*)" denied the request(?:: (.*)| without explanation.*)$`,
	)

	// k8s.io/apiserver pkg/authz/plugin/namespace/lifecycle.
	terminating = regexp.MustCompile(`unable to create new content in namespace (\S+) because it is being terminated`)

	quota = regexp.MustCompile(`(?:exceeded quota|status unknown for quota): ([^\s,]+)`)
)

// outageWords are signs that a part of the cluster is unavailable.
func outageWords() []string {
	return []string{
		"connection refused", "connection reset by peer", "i/o timeout", "context deadline exceeded",
		"TLS handshake timeout", "etcdserver:", "the server is currently unable to handle the request",
		"http2: client connection lost", "no such host",
	}
}

type call struct{ kind, name, address, err string }

func webhookCall(words string) (call, bool) {
	c, match := call{kind: "admission webhook"}, admissionCall.FindStringSubmatch(words)
	if match == nil {
		c.kind, match = "conversion webhook for", conversionCall.FindStringSubmatch(words)
	} else {
		match[1] = `"` + match[1] + `"`
	}
	if match == nil {
		return call{}, false
	}
	c.name, c.err = match[1], match[2]
	if sent := posted.FindStringSubmatch(c.err); sent != nil {
		c.address, c.err = sent[1], sent[2]
	}
	return c, true
}

func webhookDenial(words string) (name, why string, ok bool) {
	match := denial.FindStringSubmatch(words)
	if match == nil {
		return "", "", false
	}
	why = match[2]
	if why == "" {
		why = "it gave no reason"
	}
	return match[1], why, true
}

// echoesOutage reports whether a message says that a part of the cluster could not be reached.
func echoesOutage(words string) bool {
	return slices.ContainsFunc(outageWords(), func(sign string) bool { return strings.Contains(words, sign) })
}

// isTekton reports whether a webhook is Tekton's own, whose refusals are about the text.
func isTekton(webhook string) bool {
	return webhook == tektonWebhook || strings.HasSuffix(webhook, "."+tektonWebhook)
}

// splitHint separates Tekton's guess from its message, and returns the Task that the guess names.
func splitHint(message string) (words, hint, task string) {
	at := taskHint.FindStringSubmatchIndex(message)
	if at == nil {
		return message, "", ""
	}
	words, hint = message[:at[0]], message[at[2]:at[3]]
	if at[4] >= 0 {
		task = message[at[4]:at[5]]
	}
	return words, hint, task
}

// QuotaName returns the ResourceQuota that a message of the API server names, or "".
func QuotaName(message string) string {
	if match := quota.FindStringSubmatch(message); match != nil {
		return match[1]
	}
	return ""
}
