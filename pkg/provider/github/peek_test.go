// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestPeek(t *testing.T) {
	cases := []struct {
		name, body string
		want       provider.Origin
	}{
		{"a ping names no repository", `{"zen": "x"}`, provider.Origin{}},
		{"the App's", `{"repository": {"id": 1, "owner": {"html_url": "no"}, "html_url": "u"}, "installation": {"id": 1}}`,
			provider.Origin{URL: "u", App: true}},
		{"a repository's own webhook", `{"repository": {"html_url": "u"}}`, provider.Origin{URL: "u"}},
		{"null is absent", `{"repository": null, "installation": null}`, provider.Origin{}},
		{"only the top level counts", `{"a": {"repository": {"html_url": "no"}, "installation": {"id": 1}}}`,
			provider.Origin{}},
		{"in any case, as the decoder reads it", `{"REPOSITORY": {"Html_Url": "u"}, "Installation": {"ID": 1}}`,
			provider.Origin{URL: "u", App: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.want.DeliveryKey, c.want.Event, c.want.Push = "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push", true
			got, err := webhook{}.Peek(headers("push"), []byte(c.body))
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	app, err := webhook{}.Peek(headers("ping", headerTarget, "integration"), []byte(`{"zen": "x"}`))
	if err != nil || !app.App || app.Push {
		t.Errorf("an App's ping: %+v, %v", app, err)
	}
}

func TestVerifyRefusesSHA1(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	d := f.PingDelivery(testApp)
	d.Header.Del("X-Hub-Signature-256")
	if err := w.Provider.Webhook.Verify(d.Header, d.Body, w.Secret); !fault.Is(err, fault.Operator) {
		t.Errorf("only X-Hub-Signature: %v, want an Operator fault", err)
	}
	d.Header.Set("X-Hub-Signature-256", d.Header.Get("X-Hub-Signature"))
	if err := w.Provider.Webhook.Verify(d.Header, d.Body, w.Secret); !fault.Is(err, fault.Operator) {
		t.Errorf("SHA-1 in the other header: %v, want an Operator fault", err)
	}
}

func TestVerifyRefusesAnEmptySecret(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	d := f.PingDelivery(testApp)
	mac := hmac.New(sha256.New, nil)
	mac.Write(d.Body)
	d.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	for _, secret := range []string{"", " \n"} {
		if err := w.Provider.Webhook.Verify(d.Header, d.Body, []byte(secret)); !fault.Is(err, fault.Operator) {
			t.Errorf("signed with an empty secret: %v, want an Operator fault", err)
		}
	}
}

func TestPeekRefusesTrailingData(t *testing.T) {
	for _, body := range []string{"{}{}", "{} x", `{"a":1`, `{"a":` + strings.Repeat("[", 20000),
		`{"repository":{"html_url":[]}}`} {
		if _, err := (webhook{}).Peek(headers("push"), []byte(body)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.30s: %v, want an Invalid fault", body, err)
		}
	}
}
