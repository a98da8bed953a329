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

// copiedSecret returns the receivers' copy of the webhook's secret.
func (env *environment) copiedSecret() webhooksecret.Value {
	env.t.Helper()
	name, id := env.copyLocation()
	shard, err := env.Kube.CoreV1().Secrets(env.Namespace).Get(env.ctx, name, metav1.GetOptions{})
	if err != nil {
		return webhooksecret.Value{}
	}
	value, _ := webhooksecret.Copy(shard.Data, id)
	return value
}

// copyLocation returns the Secret that has the copy of the webhook's secret, and the copy's ID in
// it.
func (env *environment) copyLocation() (shard, id string) {
	namespace, name, key := env.git.secret(env)
	if env.inherited != "" {
		namespace, name = env.Namespace, env.inherited
	}
	id = webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: namespace, Name: name, Key: key})
	return webhooksecret.ShardName(webhooksecret.ShardOf(id)), id
}

// isBackgroundCall reports whether a controller made the call to copy webhook secrets or to look
// for undelivered webhooks. No event waits for these calls.
func isBackgroundCall(c cluster.Call) bool {
	return strings.HasSuffix(c.UserAgent, "/webhook-secrets") || strings.HasSuffix(c.UserAgent, "/deliveries") ||
		strings.HasSuffix(c.UserAgent, "/webhooks")
}

// awaitCopiedSecret waits, at most the time of S31, until the receivers have these values of the
// webhook's secret; an empty value is none. It sends wrong deliveries, because without them the
// controller reads the Secret only every 20 s.
func (env *environment) awaitCopiedSecret(current, previous string) {
	env.t.Helper()
	env.eventually(ruleLimit(), "the webhook's secret is copied", func() error {
		if now := env.copiedSecret(); string(now.Current) != current || string(now.Previous) != previous {
			env.sendWrongSecret()
			return fmt.Errorf("the copy has %d and %d bytes, want %d and %d", len(now.Current), len(now.Previous), len(current),
				len(previous))
		}
		return nil
	})
	want := http.StatusUnauthorized
	if current == "" {
		want = http.StatusServiceUnavailable
	}
	for _, receiver := range env.receivers { // their watches are a moment behind
		env.eventually(soon, "a receiver has the copy", func() error {
			if a := env.sendWrongSecretTo(receiver); env.git.tip("main") != "" && a.status != want {
				return fmt.Errorf("a guess is answered %v, want %d", a, want)
			}
			return nil
		})
	}
}

// sendWrongSecret sends the first receiver a delivery that no secret matches.
func (env *environment) sendWrongSecret() { env.sendWrongSecretTo(env.receivers[0]) }

// sendWrongSecretTo sends a delivery that no secret matches, if there is a commit for it.
func (env *environment) sendWrongSecretTo(receiver *installation.Process) (a response) {
	env.t.Helper()
	if env.git.tip("main") == "" {
		return a
	}
	push := env.newDelivery()
	_, body := partsOf(push)
	request, err := env.git.signed(push, body, "a guess").Request(env.ctx, receiver.URL)
	env.must(err)
	a, err = exchange(request)
	env.must(err)
	if a.status/100 == 2 {
		env.t.Errorf("a guess is answered %v", a)
	}
	return a
}

// S31: an installation and a team have the Secrets that they had with Pipelines as Code, and
// nothing else. The receiver may read none of them, and is ready once the controllers have copied
// what it needs. A rotation takes effect within 30 s. The copies work while no controller runs.
func TestReceiverReadsOnlySecretCopies(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		env := newEnvironment(t, setup{service: on})
		env.must(env.Kube.CoreV1().Secrets(env.Namespace).DeleteCollection(env.ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "type=Opaque,metadata.name!=plumbline-github-app"}))
		receiver, err := env.Receiver(env.ctx, false)
		env.must(err)
		started := make(chan error, 1)
		go func() { started <- receiver.Start(env.ctx) }()
		t.Cleanup(func() { _ = receiver.Kill() })
		env.receivers = append(env.receivers, receiver)
		env.eventually(soon, "the receiver, without copies, is not ready", func() error {
			if status := env.getStatus(receiver, "/ready"); status != http.StatusServiceUnavailable {
				return fmt.Errorf("it answers %d", status)
			}
			return nil
		})
		controller := env.startController(false)
		env.must(<-started)
		env.awaitClaimed()

		namespace, name, key := env.git.secret(env)
		secrets := env.Kube.CoreV1().Secrets(namespace)
		secret, err := secrets.Get(env.ctx, name, metav1.GetOptions{})
		env.must(err)
		before, after := string(secret.Data[key]), "the-next-webhook-secret"
		sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("hello", "push")})
		secret.Data[key] = []byte(after)
		env.must(errOf(secrets.Update(env.ctx, secret, metav1.UpdateOptions{}))) // in place, so there is no previous value
		_, body := partsOf(env.newDelivery())
		env.awaitCopiedSecret(after, "") // not through the GitLab, which disables a hook after four refusals
		env.awaitCheck(sha, checkName("hello"), "success", soon)
		env.kill(controller)
		env.eventually(soon, "the new value is taken", func() error {
			request, err := env.git.signed(env.newDelivery(), body, after).Request(env.ctx, receiver.URL)
			env.must(err)
			if a, err := exchange(request); err != nil || a.status != http.StatusAccepted {
				return fmt.Errorf("answered %v, %w", a, err)
			}
			return nil
		})
		env.startController(false)
		env.awaitAllSettled(afterFault)
		env.requireTextNotLeaked(before)
		env.requireTextNotLeaked(after)
	})
}
