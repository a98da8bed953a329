// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// docs/adr/0010: for a version without keys, the key is made of what a repetition keeps and of what
// distinguishes two events.
func TestDeliveryKeyOfOldServers(t *testing.T) {
	key := func(event, uuid, body string) string {
		// GitLab generates a new one for each request.
		h := headers(event, "X-Gitlab-Webhook-UUID", fmt.Sprint(rand.Int()), "X-Gitlab-Event-UUID", uuid)
		h.Del("Idempotency-Key")
		origin, err := webhook{}.Peek(h, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return origin.DeliveryKey
	}
	cases := []struct {
		name                           string
		event, uuid, body              string
		otherEvent, otherUUID, another string
		same                           bool
	}{
		{"a request that is repeated on its way", eventPush, "u", "{}", eventPush, "u", "{}", true},
		{"a merge request's event that is sent again", eventMergeRequest, "u", "{}", eventMergeRequest, "x", "{}", true},
		{"a comment's that is sent again", eventNote, "u", "{}", eventNote, "x", "{}", true},
		{"a tag that is deleted and made again", eventTag, "u", "{}", eventTag, "x", "{}", false},
		{"a push that is taken back and made again", eventPush, "u", "{}", eventPush, "x", "{}", false},
		{"another event", eventPush, "u", "{}", eventTag, "u", "{}", false},
		{"another body", eventMergeRequest, "u", "{}", eventMergeRequest, "u", "{ }", false},
		{"where one part ends", eventPush, "u", "{}", eventPush, "", "{}", false},
	}
	for _, c := range cases {
		first, second := key(c.event, c.uuid, c.body), key(c.otherEvent, c.otherUUID, c.another)
		if (first == second) != c.same || len(first) > 255 {
			t.Errorf("%s: %q and %q, want them equal: %t", c.name, first, second, c.same)
		}
	}
}

func TestPeek(t *testing.T) {
	cases := []struct{ name, body, url string }{
		{"a body without a project", `{"object_kind": "x"}`, ""},
		{"the project's page", `{"object_attributes": {"source": {"web_url": "no"}}, "project": {"id": 1, "web_url": "u"}}`,
			"u"},
		{"null is absent", `{"project": null}`, ""},
		{"in any case, as the decoder reads it", `{"PROJECT": {"Web_Url": "u"}}`, "u"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := provider.Origin{URL: c.url, DeliveryKey: testKey, Event: eventPush, Push: true}
			got, err := webhook{}.Peek(headers(eventPush), []byte(c.body))
			if err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
	if _, err := (webhook{}).Peek(headers(eventPush, "Content-Type", "application/x-www-form-urlencoded"),
		[]byte("{}")); !fault.Is(err, fault.Invalid) {
		t.Errorf("form-encoded: %v, want an Invalid fault", err)
	}
}
