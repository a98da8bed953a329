// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	headerEvent     = "X-GitHub-Event"
	headerDelivery  = "X-GitHub-Delivery"
	headerSignature = "X-Hub-Signature-256"
	headerTarget    = "X-GitHub-Hook-Installation-Target-Type"
	headerHost      = "X-GitHub-Enterprise-Host"
	headerGitea     = "X-Gitea-Event-Type"
)

// maxHeader and maxKey are the bytes that are kept of a header, and that a delivery key may have.
const (
	maxHeader = 1024
	maxKey    = 255
)

// webhook reads GitHub's deliveries (https://docs.github.com/webhooks/webhook-events-and-payloads).
type webhook struct{}

// Claims tells whether the delivery is GitHub's: Gitea sends GitHub's header besides its own.
func (webhook) Claims(h http.Header) bool {
	return h.Get(headerEvent) != "" && h.Get(headerGitea) == ""
}

// Verify checks the HMAC-SHA256 of the body. White space around the secret does not count. The older SHA-1 signature
// is not accepted, and a secret that is empty verifies nothing.
func (webhook) Verify(h http.Header, body, secret []byte) error {
	secret = bytes.TrimSpace(secret)
	if len(secret) == 0 {
		return unauthenticated("no webhook secret is configured: set webhook.secret, here and at GitHub")
	}
	signature := h.Values(headerSignature)
	if len(signature) != 1 {
		return unauthenticated("the delivery has no " + headerSignature + " header: set a secret on GitHub's webhook")
	}
	given, isSHA256 := strings.CutPrefix(signature[0], "sha256=")
	want, err := hex.DecodeString(given)
	if err != nil || !isSHA256 {
		return unauthenticated("the delivery's signature is not a SHA-256 HMAC")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	if !hmac.Equal(mac.Sum(nil), want) {
		return unauthenticated("the delivery's signature does not match: the webhook secrets here and at GitHub differ")
	}
	return nil
}

func unauthenticated(message string) error {
	return fault.Operatorf("Unauthenticated", "%s", message)
}

// readsJSON refuses the other content type GitHub can be set to.
func readsJSON(h http.Header) error {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err == nil && kind == "application/x-www-form-urlencoded" {
		return fault.Invalidf("BadPayload",
			"the delivery is form-encoded: set the webhook's content type to application/json at GitHub")
	}
	return nil
}

// deliveryKey returns what redeliveries have in common.
func deliveryKey(h http.Header) (string, error) {
	key := h.Get(headerDelivery)
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return "", fault.Invalidf("BadPayload", "the delivery has no usable %s header", headerDelivery)
	}
	return key, nil
}

// safeHeaders keeps what expressions may read. It is a list of what is kept, so that no secret is forgotten.
func safeHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		headerEvent, headerDelivery, headerTarget, headerHost, "X-GitHub-Hook-ID", "X-GitHub-Enterprise-Version",
		"X-GitHub-Hook-Installation-Target-ID", "User-Agent", "Content-Type",
	} {
		if value := h.Get(name); value != "" {
			out[http.CanonicalHeaderKey(name)] = boundary(clean(value), maxHeader)
		}
	}
	return out
}
