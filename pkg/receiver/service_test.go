// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// service is a Git service for tests: the body is a message in JSON. Its headers start with X-Test,
// or X-<name>.
type service struct{ name string }

func (s service) header(of string) string { return "X-" + cmp.Or(s.name, "Test") + "-" + of }

type message struct {
	URL, SHA, Host, Padding string
	App                     bool
	// At is when the event happened, in Unix seconds. With it, the body identifies the event.
	At int64 `json:",omitempty"`
	// Pull is the number of the event's pull request, 0 for a push.
	Pull int64 `json:",omitempty"`
}

func (s service) Claims(h http.Header) bool { return h.Get(s.header("Event")) != "" }

func (s service) Peek(h http.Header, body []byte) (provider.Origin, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return provider.Origin{}, fault.Invalidf("BadJSON", "the body is not JSON")
	}
	event := h.Get(s.header("Event"))
	return provider.Origin{
		URL: m.URL, App: m.App, DeliveryKey: h.Get(s.header("Delivery")), Event: event, Push: event == "push",
	}, nil
}

func (s service) Verify(h http.Header, body, secret []byte) error {
	if !hmac.Equal([]byte(h.Get(s.header("Signature"))), []byte(sign(body, secret))) {
		return fault.Operatorf("Unauthenticated", "the signature is wrong")
	}
	return nil
}

func (s service) Decode(h http.Header, body []byte) (*v1alpha1.GitEventSpec, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	switch event := h.Get(s.header("Event")); {
	case event == "panic":
		panic(string(body))
	case event != "push":
		return nil, fault.Ignoredf("EventIgnored", "%s events are not acted on", event)
	case m.SHA == "":
		return nil, fault.Invalidf("MissingField", "after: is missing")
	}
	spec := &v1alpha1.GitEventSpec{
		Provider: strings.ToLower(cmp.Or(s.name, "test")), Host: m.Host, DeliveryKey: h.Get(s.header("Delivery")),
		Trigger:   v1alpha1.TriggerPush,
		EventType: "push", SHA: m.SHA, Project: v1alpha1.Project{URL: m.URL},
		Headers: map[string]string{s.header("Event"): "push"},
	}
	if m.Pull != 0 {
		spec.PullRequest = &v1alpha1.PullRequest{Number: m.Pull}
	}
	if m.At != 0 {
		spec.Body = &v1alpha1.BodyIdentity{Key: sign(body, nil), At: metav1.Unix(m.At, 0)}
	}
	return spec, nil
}

func sign(body, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// delivery is a request to send.
type delivery struct {
	service               service
	event, key, signature string
	message               message
	raw                   []byte // instead of message
}

func push(key string) delivery {
	return delivery{event: "push", key: key,
		message: message{URL: repositoryURL, SHA: sha, Host: "git.example", App: true, Padding: bodyMarker}}
}

// large is a push whose body does not fit into its event.
func large(key string) delivery {
	noise := make([]byte, 50_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // documented never to fail
	d := push(key)
	d.message.Padding = bodyMarker + base64.StdEncoding.EncodeToString(noise)
	return d
}

func (d delivery) body() []byte {
	if d.raw != nil {
		return d.raw
	}
	body, _ := json.Marshal(d.message) // strings, a number and a bool always marshal
	return body
}

func (d delivery) request() *http.Request {
	body := d.body()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set(d.service.header("Event"), d.event)
	r.Header.Set(d.service.header("Delivery"), d.key)
	if d.signature == "" {
		d.signature = sign(body, []byte(webhookSecret))
	}
	r.Header.Set(d.service.header("Signature"), d.signature)
	return r
}

// endless is a body that never ends.
type endless struct{ read int64 }

func (b *endless) Read(p []byte) (int, error) {
	b.read += int64(len(p))
	return len(p), nil
}
