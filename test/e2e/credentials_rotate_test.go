// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// During a rotation of the webhook's secret the old value and the new one are valid, and the
// receiver reports when the old one was used. Afterwards the old one is refused. No process
// restarts. The receiver sees a changed copy a moment after the API server, so the first delivery
// of each stage is repeated until it gets the wanted answer.
func TestWebhookSecretRotation(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		s := newSecretEnv(t, on)
		s.startController(false)
		before, after := s.data[s.key], "the-next-webhook-secret"
		answers := func(secret string) int {
			t.Helper()
			_, push := s.push(map[string]string{".tekton/run.yaml": pipeline("hello", "push")})
			_, body := partsOf(push)
			// not through the service, which would disable its hook
			request, err := s.git.signed(push, body, secret).Request(s.ctx, s.receivers[0].URL)
			s.must(err)
			got, err := exchange(request)
			s.must(err)
			return got.status
		}
		for _, stage := range []struct {
			current, previous string
			first             string // the request that only this stage answers like this
			olds, news        int
			used              int // how often the previous value is used once the stage is reached
		}{
			{before, "", before, http.StatusAccepted, http.StatusUnauthorized, 0},
			{after, before, after, http.StatusAccepted, http.StatusAccepted, 1},
			{after, "", before, http.StatusUnauthorized, http.StatusAccepted, 0},
		} {
			data := map[string]string{s.key: stage.current}
			if stage.previous != "" {
				data[s.key+".previous"] = stage.previous
			}
			s.updateSecret(data)
			s.awaitCopiedSecret(stage.current, stage.previous)
			want := map[string]int{before: stage.olds, after: stage.news, "anything else": http.StatusUnauthorized}
			s.eventually(soon, "the receiver has the copy", func() error {
				if got := answers(stage.first); got != want[stage.first] {
					return fmt.Errorf("answered %d, want %d", got, want[stage.first])
				}
				return nil
			})
			used := s.previousUsed()
			for secret, status := range want {
				if got := answers(secret); got != status {
					t.Errorf("with %q and %q, a delivery signed with %q is answered %d, want %d", stage.current, stage.previous,
						secret, got, status)
				}
			}
			if got := s.previousUsed() - used; got != stage.used {
				t.Errorf("the previous secret was used %d times, want %d", got, stage.used)
			}
		}
		where := fmt.Sprintf(`"previousWebhookSecret":"%s/%s webhook.secret.previous"`, s.namespace, s.name)
		if told, used := strings.Count(s.processLog(s.receivers[0]), where), s.previousUsed(); told != used {
			t.Errorf("the log says %d times %s, want %d", told, where, used)
		}
		s.requireTextNotLeaked(before)
		s.requireTextNotLeaked(after)
	})
}

// previousUsed returns how often the first receiver has accepted the previous webhook secret.
func (s *secretEnv) previousUsed() int {
	s.t.Helper()
	return s.metric(s.receivers[0], "plumbline_receiver_previous_webhook_secret_total{")
}

// A change of the ConfigMap takes effect without a restart.
func TestConfigurationReloads(t *testing.T) {
	t.Parallel()
	s := newSecretEnv(t, githubApp)
	s.startDefaultController()
	s.setConfig("application-name", "Another CI")
	s.eventually(soon, "checks have the new name", func() error {
		sha := s.pushFile(pipeline("renamed", "push"))
		s.awaitRunsCreated(sha)
		s.awaitSettled(sha, soon)
		if _, found := s.currentCheck(sha, "Another CI / renamed"); !found {
			return fmt.Errorf("it has the old one")
		}
		return nil
	})
	s.setConfig("github-url", "https://github.invalid")
	_, delivery := s.push(map[string]string{".tekton/run.yaml": pipeline("elsewhere", "push")})
	s.eventually(soon, "the receiver believes the new URL", func() error {
		if status, answer := s.post(s.receivers[0], delivery); s.countDeliveries(s.receivers[0], "ignored",
			"OtherHost") == 0 {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
}

// setConfig changes a key of the ConfigMap.
func (env *environment) setConfig(key, value string) {
	env.t.Helper()
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, value)
	env.must(errOf(env.Kube.CoreV1().ConfigMaps(env.Namespace).Patch(env.ctx, "plumbline", types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})))
}
