// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// marker is a text of a body that must not be found in a log.
const marker = "plumbline-e2e-body-of-a-stranger"

// A9, A10: a delivery with a wrong signature or token is answered 401, one that cannot be decoded
// 400, and one over GitHub's 25 MiB, with or without a declared length, 413. They cause no object
// and no call, and no body is in a log.
func TestBadDeliveriesAreRefused(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1, proxied: true}, refusesForgeries)
}

func refusesForgeries(t *testing.T, env *environment) {
	receiver := env.receivers[0]
	env.git.commit("main", forge.Change{
		Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}, Message: marker,
	})
	calls := len(receiver.Proxy.Calls())
	cases := env.forgedDeliveries()
	for name, d := range cases {
		if a := env.mustSend(receiver, d); a.status != http.StatusUnauthorized || strings.Contains(a.body, marker) {
			t.Errorf("%s: answered %v, want 401 without the body", name, a)
		}
	}
	if n := env.countDeliveries(receiver, "rejected", "Unauthenticated"); n != len(cases) {
		t.Errorf("the metric counts %d unauthenticated deliveries, want %d", n, len(cases))
	}
	if env.git.kind() == githubApp {
		env.requirePermanentRefusals()
	}
	env.requireNothingStored("after what is refused")
	env.requireNoSideEffects("after what is refused")
	for _, call := range receiver.Proxy.Calls()[calls:] {
		// The receiver only reads what names the secret.
		if call.Verb == "create" || call.Verb == "get" && call.Resource != "repositories" {
			t.Errorf("an unauthenticated delivery made the call %s %s %s", call.Verb, call.Resource, call.Name)
		}
	}
	log := env.processLog(receiver)
	equal(t, "the log quotes the body of an unauthenticated delivery", strings.Contains(log, marker), false)
	equal(t, "the log quotes the secret", strings.Contains(log, env.webhookSecret()), false)
	equal(t, "the log reports an unauthenticated delivery", strings.Contains(log, "Unauthenticated"), true)
	env.deliver(env.newDelivery(), 202) // the right secret still works
}

// forgedDeliveries returns deliveries that the service has not sent. pkg/provider/providertest has
// the other deliveries that Verify refuses.
func (env *environment) forgedDeliveries() map[string]delivery {
	d := env.newDelivery()
	_, body := partsOf(d)
	cases := map[string]delivery{
		"another secret": env.git.signed(d, body, "another secret"), "no secret": env.git.signed(env.newDelivery(), body, ""),
	}
	if signed, ok := env.newDelivery().(forge.Delivery); ok {
		signed.Body = bytes.Replace(signed.Body, []byte(marker), []byte(marker+"-changed"), 1)
		cases["the body was changed after it was signed"] = signed
		signed, _ = env.newDelivery().(forge.Delivery)
		signed.Header.Del("X-Hub-Signature-256")
		cases["only the SHA-1 signature is there"] = signed
	}
	return cases
}

// requirePermanentRefusals requires the answers to signed requests that are no deliveries.
func (env *environment) requirePermanentRefusals() {
	env.t.Helper()
	const limit = 25 << 20
	_, whole := partsOf(env.newDelivery())
	if a := env.mustSend(env.receivers[0],
		env.git.signed(env.newDelivery(), whole[:len(whole)/2], env.webhookSecret())); a.status != http.StatusBadRequest {
		env.t.Errorf("half a body is answered %v, want 400", a)
	}
	for name, body := range map[string]io.Reader{
		"one byte too big, with its length":   bytes.NewReader(make([]byte, limit+1)),
		"in chunks, and it does not even end": endlessBody(env.t, limit+1),
	} {
		if a, err := env.postStream(body); err != nil || a.status != http.StatusRequestEntityTooLarge {
			env.t.Errorf("%s: answered %v (%v), want 413", name, a, err)
		}
	}
	if n := env.countDeliveries(env.receivers[0], "rejected", "TooLarge"); n != 2 {
		env.t.Errorf("the metric counts %d bodies that are too big, want 2", n)
	}
}

// A9: while there is no secret to verify a delivery with, because it is missing or cannot be read,
// the delivery is answered 503 with Retry-After, not 401, whatever its signature. It is accepted
// when the secret can be read again.
func TestUnreadableSecretWaits(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, waitsForWebhookSecret)
}

func waitsForWebhookSecret(t *testing.T, env *environment) {
	receiver := env.receivers[0]
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	_, body := partsOf(delivery)
	forged := env.git.signed(env.newDelivery(), body, "another secret")
	refuses := func(why string) {
		t.Helper()
		env.awaitCopiedSecret("", "")
		before := env.countDeliveries(receiver, "unavailable", "SecretMissing")
		env.requireRetryLater(why, env.mustSend(receiver, delivery))
		env.requireRetryLater(why+", and the delivery is forged", env.mustSend(receiver, forged))
		if n := env.countDeliveries(receiver, "unavailable", "SecretMissing") - before; n != 2 {
			t.Errorf("%s: the metric counts %d deliveries without a secret, want 2", why, n)
		}
	}
	namespace, name, key := env.git.secret(env)
	secrets := env.Kube.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(env.ctx, name, metav1.GetOptions{})
	env.must(err)
	whole := secret.Data
	secret.ObjectMeta = metav1.ObjectMeta{Name: name}

	env.must(secrets.Delete(env.ctx, name, metav1.DeleteOptions{}))
	refuses("the Secret does not exist")
	secret.Data = maps.Clone(whole)
	delete(secret.Data, key)
	env.must(errOf(secrets.Create(env.ctx, secret, metav1.CreateOptions{})))
	refuses("the Secret has no " + key)
	reads := func(c cluster.Call) bool { return c.Is("get", "secrets") && c.Name == name }
	rule := env.controllers[0].Proxy.Add(cluster.Rule{Match: reads, Do: cluster.Fault(cluster.Unavailable())})
	secret.Data = whole
	env.must(errOf(secrets.Update(env.ctx, secret, metav1.UpdateOptions{})))
	refuses("the controller cannot read the Secret")
	env.awaitHits(rule, 1)
	rule.Remove()
	env.requireNothingStored("while there was no secret")
	env.requireNoSideEffects("while there was no secret")

	env.awaitCopiedSecret(string(whole[key]), "")
	if a := env.mustSend(receiver, forged); a.status != http.StatusUnauthorized {
		t.Errorf("with the secret back a forged delivery is answered %v, want 401", a)
	}
	env.deliver(delivery, 202)
	env.awaitCheck(sha, checkName("hello"), "success", afterFault)
	env.requireOneOfEach(sha)
}

// postStream posts a body as a delivery of the App. With a length, the client first asks whether
// it may send the body: a server that refuses it unread closes the connection, and the answer may
// be lost. Without a length it is sent in chunks.
func (env *environment) postStream(body io.Reader) (response, error) {
	request, err := http.NewRequestWithContext(env.ctx, http.MethodPost, env.receivers[0].URL, body)
	if err != nil {
		return response{}, err
	}
	request.Header, _ = partsOf(env.newDelivery())
	if request.ContentLength > 0 {
		request.Header.Set("Expect", "100-continue")
	}
	return exchange(request)
}

// endlessBody returns a body of n blanks that does not end while the test runs.
func endlessBody(t *testing.T, n int) io.Reader {
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	go func() { _, _ = writer.Write(bytes.Repeat([]byte(" "), n)) }()
	return reader
}
