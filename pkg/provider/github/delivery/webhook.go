// SPDX-License-Identifier: Apache-2.0

// Package delivery reads what GitHub's webhooks send: values from bytes, without a client.
package delivery

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	headerEvent     = "X-GitHub-Event"
	headerDelivery  = "X-GitHub-Delivery"
	headerSignature = "X-Hub-Signature-256"
	headerTarget    = "X-GitHub-Hook-Installation-Target-Type"
	headerHost      = "X-GitHub-Enterprise-Host"
	headerGitea     = "X-Gitea-Event-Type"
)

// Webhook reads GitHub's deliveries (https://docs.github.com/webhooks/webhook-events-and-payloads).
type Webhook struct{}

// Claims implements provider.Webhook. Gitea sends GitHub's header in addition to its own.
func (Webhook) Claims(h http.Header) bool {
	return h.Get(headerEvent) != "" && h.Get(headerGitea) == ""
}

// Verify checks the HMAC-SHA256 of the body. White space around the secret is ignored. The older
// SHA-1 signature is not accepted, and an empty secret never verifies.
func (Webhook) Verify(h http.Header, body, secret []byte) error {
	secret = bytes.TrimSpace(secret)
	if len(secret) == 0 {
		return payload.Unauthenticated("no webhook secret is configured: set webhook.secret, here and at GitHub")
	}
	signature := h.Values(headerSignature)
	if len(signature) != 1 {
		return payload.Unauthenticated("the delivery has no " + headerSignature + " header: set a secret on GitHub's webhook")
	}
	given, isSHA256 := strings.CutPrefix(signature[0], "sha256=")
	want, err := hex.DecodeString(given)
	if err != nil || !isSHA256 {
		return payload.Unauthenticated("the delivery's signature is not a SHA-256 HMAC")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	if !hmac.Equal(mac.Sum(nil), want) {
		return payload.Unauthenticated(
			"the delivery's signature does not match: the webhook secrets here and at GitHub differ",
		)
	}
	return nil
}

// Peek reads only repository.html_url and whether there is an installation, without decoding the
// rest.
func (Webhook) Peek(h http.Header, body []byte) (provider.Origin, error) {
	if err := payload.CheckJSON(h); err != nil {
		return provider.Origin{}, err
	}
	key, err := payload.Key(h, headerDelivery)
	if err != nil {
		return provider.Origin{}, err
	}
	origin := provider.Origin{
		App: h.Get(headerTarget) == "integration", DeliveryKey: key,
		Event: text.Bytes(text.Clean(h.Get(headerEvent)), payload.MaxHeader),
	}
	origin.Push = origin.Event == "push"
	err = payload.Scan(body, payload.Values{
		"repository": payload.Object("repository", payload.Values{
			"html_url": payload.String("repository.html_url", &origin.URL),
		}),
		"installation": payload.Object("installation", payload.Values{
			"id": payload.Number("installation.id", &origin.App),
		}),
	})
	if err != nil {
		return provider.Origin{}, err
	}
	return origin, nil
}

// safeHeaders returns the headers that expressions may read.
func safeHeaders(h http.Header) map[string]string {
	return payload.Headers(h,
		headerEvent, headerDelivery, headerTarget, headerHost, "X-GitHub-Hook-ID", "X-GitHub-Enterprise-Version",
		"X-GitHub-Hook-Installation-Target-ID", "User-Agent", "Content-Type",
	)
}
