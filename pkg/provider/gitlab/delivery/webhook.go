// SPDX-License-Identifier: Apache-2.0

// Package delivery reads what GitLab's webhooks send: values from bytes, without a client.
package delivery

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
)

const (
	headerEvent    = "X-Gitlab-Event"
	headerToken    = "X-Gitlab-Token" // #nosec G101 -- a header's name
	headerDelivery = KeyHeader
	headerUUID     = "X-Gitlab-Event-UUID"
	headerHook     = "X-Gitlab-Webhook-UUID"
	headerInstance = "X-Gitlab-Instance"
)

// KeyHeader is what all attempts to deliver the same thing have in common, since GitLab 17.4.
const KeyHeader = "Idempotency-Key"

// The names of the events that are decoded
// (https://docs.gitlab.com/user/project/integrations/webhook_events/).
const (
	eventPush         = "Push Hook"
	eventTag          = "Tag Push Hook"
	eventMergeRequest = "Merge Request Hook"
	eventNote         = "Note Hook"
)

// Webhook reads GitLab's deliveries.
type Webhook struct{}

// Claims reports whether the delivery is GitLab's.
func (Webhook) Claims(h http.Header) bool { return h.Get(headerEvent) != "" }

// Peek reads project.web_url and nothing else into memory. Of a merge request that is the target.
func (Webhook) Peek(h http.Header, body []byte) (provider.Origin, error) {
	if err := payload.ReadsJSON(h); err != nil {
		return provider.Origin{}, err
	}
	key, err := deliveryKey(h, body)
	if err != nil {
		return provider.Origin{}, err
	}
	origin := provider.Origin{DeliveryKey: key, Event: text.Bytes(text.Clean(h.Get(headerEvent)), payload.MaxHeader)}
	origin.Push = origin.Event == eventPush || origin.Event == eventTag
	err = payload.Scan(body, payload.Values{
		"project": payload.Object("project", payload.Values{
			"web_url": payload.String("project.web_url", &origin.URL),
		}),
	})
	if err != nil {
		return provider.Origin{}, err
	}
	return origin, nil
}

// Verify compares the token. White space around the secret does not count, and a secret that is
// empty verifies nothing. GitLab signs no body: whoever knows the token can send any.
func (Webhook) Verify(h http.Header, _, secret []byte) error {
	secret = bytes.TrimSpace(secret)
	if len(secret) == 0 {
		return payload.Unauthenticated(
			"no webhook secret is configured: set webhook.secret here, and the secret token at GitLab",
		)
	}
	given := h.Values(headerToken)
	if len(given) != 1 {
		return payload.Unauthenticated(
			"the delivery has no " + headerToken + " header: set a secret token on GitLab's webhook",
		)
	}
	// Over hashes the time tells not even the length.
	have, want := sha256.Sum256([]byte(given[0])), sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
		return payload.Unauthenticated("the delivery's token does not match: the webhook secrets here and at GitLab differ")
	}
	return nil
}

// deliveryKey returns what repetitions of a delivery have in common: GitLab's own key, or, of
// versions that have none (before 17.4, gitlab!160952), a digest of the body. Pushes hold no time,
// so that a tag that is made again at the same commit has the body of the first: their event's id
// tells them apart, which a resend does not keep (docs/adr/0010).
//
// GitLab's own is random. One that looks like a digest is refused: it could be that of a body
// another project is about to be sent, whose event would then be taken for a foreign one.
func deliveryKey(h http.Header, body []byte) (string, error) {
	if strings.HasPrefix(h.Get(headerDelivery), payload.DigestPrefix) {
		return "", payload.Bad("the delivery's " + headerDelivery + " header is none of GitLab's")
	}
	if h.Get(headerDelivery) != "" {
		return payload.Key(h, headerDelivery)
	}
	event, id := h.Get(headerEvent), ""
	if event == eventPush || event == eventTag {
		id = h.Get(headerUUID)
	}
	return payload.Digest([]byte(event), []byte(id), body), nil
}

// safeHeaders keeps what expressions may read.
func safeHeaders(h http.Header) map[string]string {
	return payload.Headers(
		h,
		headerEvent,
		headerDelivery,
		headerUUID,
		headerHook,
		headerInstance,
		"User-Agent",
		"Content-Type",
	)
}
