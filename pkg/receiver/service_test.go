// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// service is a Git service whose deliveries are easy to make: the body is a message.
type service struct{}

type message struct {
	URL, SHA, Host, Padding string
	App                     bool
}

func (service) Claims(h http.Header) bool { return h.Get("X-Test-Event") != "" }

func (service) Peek(h http.Header, body []byte) (provider.Origin, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return provider.Origin{}, fault.Invalidf("BadJSON", "the body is not JSON")
	}
	return provider.Origin{URL: m.URL, App: m.App, DeliveryKey: h.Get("X-Test-Delivery"), Event: h.Get("X-Test-Event")}, nil
}

func (service) Verify(h http.Header, body, secret []byte) error {
	if !hmac.Equal([]byte(h.Get("X-Test-Signature")), []byte(sign(body, secret))) {
		return fault.Operatorf("Unauthenticated", "the signature is wrong")
	}
	return nil
}

func (service) Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	switch event := h.Get("X-Test-Event"); {
	case event == "panic":
		panic(string(body))
	case event != "push":
		return nil, fault.Ignoredf("EventIgnored", "%s events are not acted on", event)
	case m.SHA == "":
		return nil, fault.Invalidf("MissingField", "after: is missing")
	}
	return &v1alpha1.GitEventSpec{
		Provider: "test", Host: m.Host, DeliveryKey: h.Get("X-Test-Delivery"), Trigger: v1alpha1.TriggerPush,
		EventType: "push", SHA: m.SHA, Project: v1alpha1.Project{URL: m.URL}, Headers: map[string]string{"X-Test-Event": "push"},
	}, nil
}

func sign(body, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// delivery is a POST to be made.
type delivery struct {
	event, key, signature string
	message               message
	raw                   []byte // instead of message
}

func push(key string) delivery {
	return delivery{event: "push", key: key, message: message{URL: repositoryURL, SHA: sha, Host: "git.example", App: true, Padding: bodyMarker}}
}

func (d delivery) request() *http.Request {
	body := d.raw
	if body == nil {
		body, _ = json.Marshal(d.message) // strings and a bool always marshal
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("X-Test-Event", d.event)
	r.Header.Set("X-Test-Delivery", d.key)
	if d.signature == "" {
		d.signature = sign(body, []byte(webhookSecret))
	}
	r.Header.Set("X-Test-Signature", d.signature)
	return r
}

// endless is a body that never ends.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}
