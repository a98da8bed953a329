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
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	headerEvent    = "X-Gitlab-Event"
	headerToken    = "X-Gitlab-Token" // #nosec G101 -- a header's name
	headerDelivery = KeyHeader
	headerUUID     = "X-Gitlab-Event-UUID"
	headerHook     = "X-Gitlab-Webhook-UUID"
	headerInstance = "X-Gitlab-Instance"
)

// KeyHeader has the same value in all attempts to make the same delivery, since GitLab 17.4.
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

// Peek reads only project.web_url, without decoding the rest. For a merge request it is the
// target's.
func (Webhook) Peek(h http.Header, body []byte) (provider.Origin, error) {
	if err := payload.CheckJSON(h); err != nil {
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

// Verify compares the token. White space around the secret is ignored, and an empty secret never
// verifies. GitLab signs no body: a sender who knows the token can send any body.
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
	// The time to compare hashes does not reveal the length.
	have, want := sha256.Sum256([]byte(given[0])), sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
		return payload.Unauthenticated("the delivery's token does not match: the webhook secrets here and at GitLab differ")
	}
	return nil
}

// deliveryKey returns the key that all attempts of a delivery share: GitLab's own, or, for versions
// without one (before 17.4, gitlab!160952), a digest of the body. Pushes contain no time, so a tag
// that is created again at the same commit has the same body. The event's UUID then distinguishes
// them; a resend has another UUID (docs/adr/0010).
//
// GitLab's own key is random. A key that looks like a digest is refused, because it could be that
// of another project's future delivery, which would then be taken for a duplicate.
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

// safeHeaders returns the headers that expressions may read.
func safeHeaders(h http.Header) map[string]string {
	return payload.Headers(h, headerEvent, headerDelivery, headerUUID, headerHook, headerInstance, "User-Agent",
		"Content-Type")
}
