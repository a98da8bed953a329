// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// During a rotation both values of a webhook secret are valid. Deliveries with the previous one are
// counted and logged, so that the operator knows when it can be removed.
func TestBothSecretsAreAcceptedDuringARotation(t *testing.T) {
	const before, now = "the-secret-before", webhookSecret
	for name, test := range map[string]struct {
		data         map[string]string
		signed       string
		status       int
		withPrevious bool
	}{
		"both exist, signed with the new one": {
			map[string]string{"webhook.secret": now, "webhook.secret.previous": before + "\n"}, now, http.StatusAccepted, false,
		},
		"both exist, signed with the previous one": {map[string]string{
			"webhook.secret": now, "webhook.secret.previous": before + "\n",
		}, before, http.StatusAccepted, true},
		"both exist, signed with a third one": {
			map[string]string{"webhook.secret": now, "webhook.secret.previous": before}, "third", http.StatusUnauthorized, false,
		},
		"both are the same": {
			map[string]string{"webhook.secret": now, "webhook.secret.previous": now}, now, http.StatusAccepted, false,
		},
		"the previous one is removed": {
			map[string]string{"webhook.secret": now}, before, http.StatusUnauthorized, false,
		},
		"an empty previous one is none": {
			map[string]string{"webhook.secret": now, "webhook.secret.previous": " \n"}, "", http.StatusUnauthorized, false,
		},
		"only the previous one exists": {
			map[string]string{"webhook.secret.previous": before}, before, http.StatusServiceUnavailable, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.store(systemNamespace, "plumbline-github-app", test.data)
			d := push("k1")
			d.signature = sign(mustBody(d), []byte(test.signed))
			e.expect(test.status, d)
			if got := e.sum("plumbline.receiver.previous_webhook_secret",
				map[string]string{"provider": "test"}); (got == 1) != test.withPrevious {
				t.Errorf("counted %d with the previous secret", got)
			}
			if got := strings.Contains(e.log(),
				`"previousWebhookSecret":"plumbline/plumbline-github-app webhook.secret.previous"`); got != test.withPrevious {
				t.Errorf("the log names the previous secret: %v\n%s", got, e.log())
			}
			if strings.Contains(e.log(), before) {
				t.Error("the log contains the secret")
			}
		})
	}
}

// The secret of a Repository is rotated in the same way: the previous value has the same key with a
// suffix.
func TestRepositorySecretHasAPreviousValue(t *testing.T) {
	e := newEnv(t)
	key := pacv1alpha1.SecretKey{Namespace: "ci", Name: "lab", Key: "hook"}
	e.store(key.Namespace, key.Name,
		map[string]string{"hook": "new\n", "hook.previous": "old\n", "webhook.secret.previous": "another's"})
	got, err := receiver.Services{Copies: e.copies()}.Secret(t.Context(), key)
	if err != nil || string(got.Current) != "new" || string(got.Previous) != "old" {
		t.Errorf("got %q, %q, %v", got.Current, got.Previous, err)
	}
}
