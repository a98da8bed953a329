// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// While the webhook's secret is rotated the old value and the new one are valid, and the receiver tells when the old one
// was used; afterwards it is refused. Nothing is restarted.
func TestTheWebhookSecretIsRotated(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		s := newSecured(t, on)
		s.startController(false)
		before, after := s.data[s.key], "the-next-webhook-secret"
		delivers := func(secret string, want int) {
			t.Helper()
			_, delivery := s.push(map[string]string{".tekton/run.yaml": pipeline("hello", "push")})
			_, body := partsOf(delivery)
			s.deliver(s.git.signed(delivery, body, secret), want)
		}
		for _, stage := range []struct {
			current, previous string
			olds, news        int
			used              int // how often the previous value was, so far
		}{
			{before, "", http.StatusAccepted, http.StatusUnauthorized, 0},
			{after, before, http.StatusAccepted, http.StatusAccepted, 1},
			{after, "", http.StatusUnauthorized, http.StatusAccepted, 1},
		} {
			data := map[string]string{s.key: stage.current}
			if stage.previous != "" {
				data[s.key+".previous"] = stage.previous
			}
			s.holds(data)
			s.knows(stage.current, stage.previous)
			delivers(before, stage.olds)
			delivers(after, stage.news)
			delivers("anything else", http.StatusUnauthorized)
			if got := s.number(s.receivers[0], "plumbline_receiver_previous_webhook_secret_total{"); got != stage.used {
				t.Errorf("the previous secret was used %d times, want %d", got, stage.used)
			}
		}
		if where := fmt.Sprintf(`"previousWebhookSecret":"%s/%s webhook.secret.previous"`, s.namespace, s.name); strings.Count(s.log(s.receivers[0]), where) != 1 {
			t.Errorf("the log does not say once %s", where)
		}
		s.toldNothingOf(before)
		s.toldNothingOf(after)
	})
}

// I4: the App's private key and the ConfigMap change, and nothing is restarted. What was minted with the old key goes on
// working in the pods that have it; what comes after the change is minted with the new one.
func TestI4KeyAndConfigurationChange(t *testing.T) {
	t.Parallel()
	s := newSecured(t, githubApp)
	s.begins()
	sha := s.accepts(pipeline("long", "push", held))
	event := s.created(sha)
	s.checkReaches(sha, checkName("long"), "in_progress", soon)

	s.holds(s.replaceKey())
	minted := s.forge.Count(forge.RouteToken)
	later := s.accepts(pipeline("later", "push"))
	s.succeeds(later, "later")
	if n := s.forge.Count(forge.RouteToken) - minted; n < 2 || n > 3 {
		t.Errorf("%d tokens were asked for, want the controller's and the run's, and at most one with the key of a moment ago", n)
	}
	s.must(s.lsRemote(s.secret(event), s.repo.CloneURL))
	s.release(event)
	s.succeeds(sha, "long")
	for _, event := range s.settled(soon) {
		if told := s.told(event.Name); told[fault.ReasonCredentialsRefused] != 0 {
			t.Errorf("the Repository was told of refused credentials: %v", told)
		}
	}

	s.configure("application-name", "Another CI")
	s.eventually(soon, "checks have the new name", func() error {
		sha := s.accepts(pipeline("renamed", "push"))
		s.created(sha)
		s.settles(sha, soon)
		if _, found := s.current(sha, "Another CI / renamed"); !found {
			return fmt.Errorf("it has the old one")
		}
		return nil
	})
	s.configure("github-url", "https://github.invalid")
	_, delivery := s.push(map[string]string{".tekton/run.yaml": pipeline("elsewhere", "push")})
	s.eventually(soon, "the receiver believes the new URL", func() error {
		if status, answer := s.post(s.receivers[0], delivery); s.counted(s.receivers[0], "ignored", "OtherHost") == 0 {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
}

// number adds up the samples of a process whose lines contain the words.
func (w *world) number(p *installation.Process, words string) int {
	w.t.Helper()
	total := 0
	for _, line := range strings.Split(w.metrics(p), "\n") {
		if strings.HasPrefix(line, "#") || !strings.Contains(line, words) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		w.must(err)
		total += int(value)
	}
	return total
}

// configure changes a key of the ConfigMap.
func (w *world) configure(key, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, value)
	_, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).Patch(w.ctx, "plumbline", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}
