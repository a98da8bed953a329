// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// copied is what the receivers know of the webhook's secret.
func (w *world) copied() webhooksecret.Value {
	w.t.Helper()
	name, id := w.copyIn()
	shard, err := w.Kube.CoreV1().Secrets(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		return webhooksecret.Value{}
	}
	value, _ := webhooksecret.Copy(shard.Data, id)
	return value
}

// copyIn is the Secret that has the copy of the webhook's secret, and the copy's ID there.
func (w *world) copyIn() (shard, id string) {
	namespace, name, key := w.git.secret(w)
	if w.inherited != "" {
		namespace, name = w.Namespace, w.inherited
	}
	id = webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: key})
	return webhooksecret.ShardName(webhooksecret.ShardOf(id)), id
}

// forNoEvent reports whether a controller made the call to copy webhook secrets or to look for
// missed deliveries: no event waits for either.
func forNoEvent(c cluster.Call) bool {
	return strings.HasSuffix(c.UserAgent, "/webhook-secrets") || strings.HasSuffix(c.UserAgent, "/deliveries") || strings.HasSuffix(c.UserAgent, "/webhooks")
}

// knows waits, S31's time at most, until the receivers know these values of the webhook's secret;
// empty is none. Wrong deliveries make it quick: without them the Secret is read every 20 s.
func (w *world) knows(current, previous string) {
	w.t.Helper()
	w.eventually(ruleLimit(), "the webhook's secret is copied", func() error {
		if now := w.copied(); string(now.Current) != current || string(now.Previous) != previous {
			w.guesses()
			return fmt.Errorf("the copy has %d and %d bytes, want %d and %d", len(now.Current), len(now.Previous), len(current), len(previous))
		}
		return nil
	})
	want := http.StatusUnauthorized
	if current == "" {
		want = http.StatusServiceUnavailable
	}
	for _, receiver := range w.receivers { // whose watches are a moment behind
		w.eventually(soon, "a receiver has the copy", func() error {
			if a := w.guess(receiver); w.git.tip("main") != "" && a.status != want {
				return fmt.Errorf("a guess is answered %v, want %d", a, want)
			}
			return nil
		})
	}
}

// guesses sends a delivery that fits no secret to the first receiver.
func (w *world) guesses() { w.guess(w.receivers[0]) }

// guess sends a delivery that fits no secret, if there is a commit to tell of.
func (w *world) guess(receiver *installation.Process) (a answered) {
	w.t.Helper()
	if w.git.tip("main") == "" {
		return a
	}
	push := w.again()
	_, body := partsOf(push)
	request, err := w.git.signed(push, body, "a guess").Request(w.ctx, receiver.URL)
	w.must(err)
	a, err = exchange(request)
	w.must(err)
	if a.status/100 == 2 {
		w.t.Errorf("a guess is answered %v", a)
	}
	return a
}

// S31: an installation and a team come with the Secrets that they had with PaC, and nothing else.
// The receiver may read none of them, and is ready when the controllers have copied what it needs.
// A rotation takes effect within 30 s, and what is copied serves while no controller runs.
func TestS31TheReceiverReadsNoSecretButCopies(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		w := newWorld(t, setup{service: on})
		w.must(w.Kube.CoreV1().Secrets(w.Namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "type=Opaque,metadata.name!=plumbline-github-app"}))
		receiver, err := w.Receiver(w.ctx, false)
		w.must(err)
		started := make(chan error, 1)
		go func() { started <- receiver.Start(w.ctx) }()
		t.Cleanup(func() { _ = receiver.Kill() })
		w.receivers = append(w.receivers, receiver)
		w.eventually(soon, "the receiver, without copies, is not ready", func() error {
			if status := w.asked(receiver, "/ready"); status != http.StatusServiceUnavailable {
				return fmt.Errorf("it answers %d", status)
			}
			return nil
		})
		controller := w.startController(false)
		w.must(<-started)
		w.claimed()

		namespace, name, key := w.git.secret(w)
		secrets := w.Kube.CoreV1().Secrets(namespace)
		secret, err := secrets.Get(w.ctx, name, metav1.GetOptions{})
		w.must(err)
		before, after := string(secret.Data[key]), "the-next-webhook-secret"
		sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("hello", "push")})
		w.deliver(delivery, http.StatusAccepted)
		secret.Data[key] = []byte(after)
		_, err = secrets.Update(w.ctx, secret, metav1.UpdateOptions{}) // in place: there is no previous value
		w.must(err)
		_, body := partsOf(w.again())
		w.knows(after, "") // by what is sent without the GitLab, which disables a hook after four refusals
		w.checkReaches(sha, checkName("hello"), "success", soon)
		w.kill(controller)
		w.eventually(soon, "the new value is taken", func() error {
			request, err := w.git.signed(w.again(), body, after).Request(w.ctx, receiver.URL)
			w.must(err)
			if a, err := exchange(request); err != nil || a.status != http.StatusAccepted {
				return fmt.Errorf("answered %v, %w", a, err)
			}
			return nil
		})
		w.startController(false)
		w.settled(afterFault)
		w.toldNothingOf(before)
		w.toldNothingOf(after)
	})
}
