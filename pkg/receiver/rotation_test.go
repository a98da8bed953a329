// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// While a webhook's secret is being replaced both values are valid; before and after that one is.
// What the previous one lets in is counted and logged, so that somebody knows when it can go.
func TestTheWebhookSecretIsRotatedWithoutALostDelivery(t *testing.T) {
	const before, now = "the-secret-before", webhookSecret
	for name, test := range map[string]struct {
		data         map[string]string
		signed       string
		status       int
		withPrevious bool
	}{
		"both are there, the new one signs":      {map[string]string{"webhook.secret": now, "webhook.secret.previous": before + "\n"}, now, http.StatusAccepted, false},
		"both are there, the previous one signs": {map[string]string{"webhook.secret": now, "webhook.secret.previous": before + "\n"}, before, http.StatusAccepted, true},
		"both are there, a third one signs":      {map[string]string{"webhook.secret": now, "webhook.secret.previous": before}, "third", http.StatusUnauthorized, false},
		"both are the same":                      {map[string]string{"webhook.secret": now, "webhook.secret.previous": now}, now, http.StatusAccepted, false},
		"the previous one is gone":               {map[string]string{"webhook.secret": now}, before, http.StatusUnauthorized, false},
		"an empty one is none":                   {map[string]string{"webhook.secret": now, "webhook.secret.previous": " \n"}, "", http.StatusUnauthorized, false},
		"only the previous one is there":         {map[string]string{"webhook.secret.previous": before}, before, http.StatusServiceUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.store(systemNamespace, "plumbline-github-app", test.data)
			d := push("k1")
			d.signature = sign(mustBody(d), []byte(test.signed))
			w.expect(test.status, d)
			if got := w.sum("plumbline.receiver.previous_webhook_secret", map[string]string{"provider": "test"}); (got == 1) != test.withPrevious {
				t.Errorf("counted %d with the previous secret", got)
			}
			if got := strings.Contains(w.log(), `"previousWebhookSecret":"plumbline/plumbline-github-app webhook.secret.previous"`); got != test.withPrevious {
				t.Errorf("the log tells of the previous secret: %v\n%s", got, w.log())
			}
			if strings.Contains(w.log(), before) {
				t.Error("the log holds the secret")
			}
		})
	}
}

// The secret that a Repository names is rotated in the same way, beside the key that it names.
func TestARepositorysWebhookSecretIsRotated(t *testing.T) {
	w := newEnv(t)
	key := pacv1alpha1.SecretKey{Namespace: "ci", Name: "lab", Key: "hook"}
	w.store(key.Namespace, key.Name, map[string]string{"hook": "new\n", "hook.previous": "old\n", "webhook.secret.previous": "another's"})
	got, err := receiver.Services{Copies: w.copies()}.Secret(t.Context(), key)
	if err != nil || string(got.Current) != "new" || string(got.Previous) != "old" {
		t.Errorf("got %q, %q, %v", got.Current, got.Previous, err)
	}
}
