// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Delivery is a webhook request of the service.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Recorded is a delivery and what it means: an event, or why it starts nothing.
type Recorded struct {
	// Name is a sentence.
	Name string
	Delivery
	Want *v1alpha1.GitEventSpec
	// Ignored is part of the Ignored fault's message where Want is nil.
	Ignored string
}

// testWebhook: deliveries are decoded and verified. Everything else is refused without a panic and
// without a request to repeat it.
func testWebhook(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	hook := w.Provider.Webhook
	for _, d := range w.Deliveries {
		testDelivery(t, w, d)
	}
	if hook.Claims(http.Header{}) {
		t.Error("claims a delivery without headers")
	}
	for _, r := range w.Recorded {
		t.Run(r.Name, func(t *testing.T) { testRecorded(t, w, r) })
	}
	testSignature(t, w)
	testHostileBodies(t, w)
}

func testRecorded(t *testing.T, w Env, r Recorded) {
	got, err := w.Provider.Webhook.Decode(r.Header, r.Body)
	if r.Want == nil {
		if f := fault.Of(err); f == nil || f.Class != fault.Ignored || !strings.Contains(f.Message, r.Ignored) {
			t.Errorf("%+v, %v, want an Ignored fault with %q", got, err, r.Ignored)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got.Body = nil // derived from the whole body; the tests of the service cover it
	if got.Trigger == v1alpha1.TriggerPullRequest && (got.HappenedAt == nil || got.HappenedAt.IsZero()) {
		t.Error("the event does not say when it happened, and what is approved depends on it")
	}
	if d := cmp.Diff(r.Want, got, cmpopts.IgnoreFields(v1alpha1.GitEventSpec{}, "HappenedAt")); d != "" {
		t.Error(d)
	}
	Storable(t, got)
	origin, err := w.Provider.Webhook.Peek(r.Header, r.Body)
	if err != nil || origin.URL != r.Want.Project.URL || origin.DeliveryKey != r.Want.DeliveryKey {
		t.Errorf("Peek returned %+v, %v, want the URL %q and the key %q", origin, err, r.Want.Project.URL, r.Want.DeliveryKey)
	}
}

func testDelivery(t *testing.T, w Env, d Delivery) {
	t.Helper()
	hook := w.Provider.Webhook
	if !hook.Claims(d.Header) {
		t.Error("does not claim its own delivery")
	}
	origin, err := hook.Peek(d.Header, d.Body)
	if err != nil || origin.URL == "" || origin.DeliveryKey == "" || origin.Event == "" {
		t.Errorf("Peek of its own delivery: %+v, %v", origin, err)
	}
	spec, err := hook.Decode(d.Header, d.Body)
	if err != nil {
		t.Errorf("Decode of its own delivery: %v", err)
		return
	}
	if spec.Project.URL != origin.URL || spec.DeliveryKey != origin.DeliveryKey || spec.Provider != w.Provider.Name {
		t.Errorf("Decode tells of another repository or delivery than Peek: %+v, %+v", spec, origin)
	}
	kept := http.Header{}
	for name, value := range spec.Headers {
		kept.Set(name, value)
		if strings.Contains(strings.ToLower(name), "signature") || strings.Contains(strings.ToLower(name), "token") {
			t.Errorf("Decode keeps the header %s: %s", name, value)
		}
	}
	again, err := hook.Decode(kept, d.Body)
	if err != nil || cmp.Diff(spec.Comment, again.Comment) != "" {
		t.Errorf("Decode with the headers that are kept: %+v, %v, want the comment %+v", again, err, spec.Comment)
	}
}

func testSignature(t *testing.T, w Env) {
	d := w.Deliveries[0]
	cases := []struct {
		name   string
		change func(*http.Header, *[]byte, *[]byte)
		ok     bool
	}{
		{"as it was sent", func(*http.Header, *[]byte, *[]byte) {}, true},
		{
			"the secret has a line break behind it",
			func(_ *http.Header, _, secret *[]byte) { *secret = append(bytes.Clone(*secret), '\n') },
			true,
		},
		{"another secret", func(_ *http.Header, _, secret *[]byte) { *secret = []byte("another") }, false},
		{"no secret is configured", func(_ *http.Header, _, secret *[]byte) { *secret = nil }, false},
		{"the secret is white space", func(_ *http.Header, _, secret *[]byte) { *secret = []byte(" \n") }, false},
		{
			"the body was changed",
			func(_ *http.Header, body, _ *[]byte) { *body = append(bytes.Clone(*body), ' ') },
			!w.SignsBody,
		},
		{"headers twice", func(h *http.Header, _, _ *[]byte) {
			for name, values := range *h {
				(*h)[name] = append(values, values...)
			}
		}, false},
		{"no headers at all", func(h *http.Header, _, _ *[]byte) { *h = http.Header{} }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			header, body, secret := d.Header.Clone(), d.Body, w.Secret
			c.change(&header, &body, &secret)
			err := w.Provider.Webhook.Verify(header, body, secret)
			if c.ok && err != nil {
				t.Errorf("refused: %v", err)
			}
			if f := fault.Of(err); !c.ok && (f == nil || f.Class != fault.Operator || f.Reason != "Unauthenticated") {
				t.Errorf("got %+v, want an Operator fault with reason Unauthenticated", f)
			}
			if err != nil && bytes.Contains([]byte(err.Error()), w.Secret) {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func testHostileBodies(t *testing.T, w Env) {
	d := w.Deliveries[0]
	bodies := map[string]string{
		"empty": "", "null": "null", "a list": "[]", "a string": `"x"`, "half": string(d.Body[:len(d.Body)/2]),
		"two objects": string(d.Body) + string(d.Body), "not UTF-8": "{\"\xff\": 1", "an empty object": "{}",
		"a million brackets":       strings.Repeat("[", 1_000_000),
		"a million nested objects": strings.Repeat(`{"a":`, 1_000_000),
		"every field is a list":    `{"repository":[],"project":[],"sender":[],"ref":[]}`,
		"every field is a number":  `{"repository":1,"project":1,"sender":1,"ref":1,"object_attributes":1,"object_kind":1}`,
		"two projects in one":      `{"repository":{"html_url":"a","HTML_URL":"b"},"project":{"web_url":"a","WEB_URL":"b"}}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			_, peekErr := w.Provider.Webhook.Peek(d.Header, []byte(body))
			if peekErr != nil && !fault.Is(peekErr, fault.Invalid) {
				t.Errorf("Peek: %v, want an Invalid fault", peekErr)
			}
			if _, err := w.Provider.Webhook.Decode(d.Header, []byte(body)); !fault.Is(err, fault.Invalid) {
				t.Errorf("Decode: %v, want an Invalid fault", err)
			}
		})
	}
}
