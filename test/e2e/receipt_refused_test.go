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

// A9, A10: a delivery that nobody vouches for as the service does is answered 401, one that cannot
// be decoded 400, and one over GitHub's 25 MiB, with or without a declared length, 413; nothing is
// stored or called, and no body is in a log.
func TestA9BadDeliveries(t *testing.T) {
	t.Parallel()
	forBothServices(t, setup{receivers: 1, controllers: 1, proxied: true}, refusesForgeries)
}

func refusesForgeries(t *testing.T, w *world) {
	receiver := w.receivers[0]
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}, Message: marker})
	calls := len(receiver.Proxy.Calls())
	cases := w.forgeries()
	for name, d := range cases {
		if a := w.sent(receiver, d); a.status != http.StatusUnauthorized || strings.Contains(a.body, marker) {
			t.Errorf("%s: answered %v, want 401 without the body", name, a)
		}
	}
	if n := w.counted(receiver, "rejected", "Unauthenticated"); n != len(cases) {
		t.Errorf("the metric counts %d unauthenticated deliveries, want %d", n, len(cases))
	}
	if w.git.kind() == githubApp {
		w.refusesForGood()
	}
	w.nothingStored("after what is refused")
	w.untouched("after what is refused")
	for _, call := range receiver.Proxy.Calls()[calls:] {
		// What names the secret is all that is looked at.
		if call.Verb == "create" || call.Verb == "get" && call.Resource != "repositories" {
			t.Errorf("an unauthenticated delivery made the call %s %s %s", call.Verb, call.Resource, call.Name)
		}
	}
	if log := w.log(receiver); strings.Contains(log, marker) || strings.Contains(log, w.webhookSecret()) || !strings.Contains(log, "Unauthenticated") {
		t.Error("the log quotes the body of an unauthenticated delivery or the secret, or does not tell of it")
	}
	w.deliver(w.again(), 202) // the right secret still opens the door
}

// forgeries are deliveries that the service has not sent; what else Verify refuses is in
// pkg/provider/providertest.
func (w *world) forgeries() map[string]delivery {
	d := w.again()
	_, body := partsOf(d)
	cases := map[string]delivery{"another secret": w.git.signed(d, body, "another secret"), "no secret": w.git.signed(w.again(), body, "")}
	if signed, ok := w.again().(forge.Delivery); ok {
		signed.Body = bytes.Replace(signed.Body, []byte(marker), []byte(marker+"-changed"), 1)
		cases["the body was changed after it was signed"] = signed
		signed, _ = w.again().(forge.Delivery)
		signed.Header.Del("X-Hub-Signature-256")
		cases["only the SHA-1 signature is there"] = signed
	}
	return cases
}

// refusesForGood requires the answers to what the service has signed and is no delivery.
func (w *world) refusesForGood() {
	w.t.Helper()
	const limit = 25 << 20
	_, whole := partsOf(w.again())
	if a := w.sent(w.receivers[0], w.git.signed(w.again(), whole[:len(whole)/2], w.webhookSecret())); a.status != http.StatusBadRequest {
		w.t.Errorf("half a body is answered %v, want 400", a)
	}
	for name, body := range map[string]io.Reader{
		"one byte too big, with its length":   bytes.NewReader(make([]byte, limit+1)),
		"in chunks, and it does not even end": unending(w.t, limit+1),
	} {
		if a, err := w.stream(body); err != nil || a.status != http.StatusRequestEntityTooLarge {
			w.t.Errorf("%s: answered %v (%v), want 413", name, a, err)
		}
	}
	if n := w.counted(w.receivers[0], "rejected", "TooLarge"); n != 2 {
		w.t.Errorf("the metric counts %d bodies that are too big, want 2", n)
	}
}

// A9: while there is no secret to verify a delivery with, because it is missing or cannot be read,
// the delivery is answered 503 with Retry-After, not 401, whatever its signature; and it is taken
// when the secret can be read again.
func TestA9SecretUnreadable(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, waitsForItsSecret)
}

func waitsForItsSecret(t *testing.T, w *world) {
	receiver := w.receivers[0]
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	_, body := partsOf(delivery)
	forged := w.git.signed(w.again(), body, "another secret")
	refuses := func(why string) {
		t.Helper()
		w.knows("", "")
		before := w.counted(receiver, "unavailable", "SecretMissing")
		w.sendAgain(why, w.sent(receiver, delivery))
		w.sendAgain(why+", and the delivery is forged", w.sent(receiver, forged))
		if n := w.counted(receiver, "unavailable", "SecretMissing") - before; n != 2 {
			t.Errorf("%s: the metric counts %d deliveries without a secret, want 2", why, n)
		}
	}
	namespace, name, key := w.git.secret(w)
	secrets := w.Kube.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	whole := secret.Data
	secret.ObjectMeta = metav1.ObjectMeta{Name: name}

	w.must(secrets.Delete(w.ctx, name, metav1.DeleteOptions{}))
	refuses("the Secret does not exist")
	secret.Data = maps.Clone(whole)
	delete(secret.Data, key)
	_, err = secrets.Create(w.ctx, secret, metav1.CreateOptions{})
	w.must(err)
	refuses("the Secret has no " + key)
	reads := func(c cluster.Call) bool { return c.Is("get", "secrets") && c.Name == name }
	rule := w.controllers[0].Proxy.Add(cluster.Rule{Match: reads, Do: cluster.Fault(cluster.Unavailable())})
	secret.Data = whole
	_, err = secrets.Update(w.ctx, secret, metav1.UpdateOptions{})
	w.must(err)
	refuses("the controller cannot read the Secret")
	w.hit(rule, 1)
	rule.Remove()
	w.nothingStored("while there was no secret")
	w.untouched("while there was no secret")

	w.knows(string(whole[key]), "")
	if a := w.sent(receiver, forged); a.status != http.StatusUnauthorized {
		t.Errorf("with the secret back a forged delivery is answered %v, want 401", a)
	}
	w.deliver(delivery, 202)
	w.checkReaches(sha, checkName("hello"), "success", afterFault)
	w.onlyOne(sha)
}

// stream posts a body as a delivery of the App: one with a length asks first whether it may be sent
// (a server that refuses it without reading it closes the connection, which may lose the answer),
// one without is sent in chunks.
func (w *world) stream(body io.Reader) (answered, error) {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.receivers[0].URL, body)
	if err != nil {
		return answered{}, err
	}
	request.Header, _ = partsOf(w.again())
	if request.ContentLength > 0 {
		request.Header.Set("Expect", "100-continue")
	}
	return exchange(request)
}

// unending is a body of n blanks that is never over while the test runs.
func unending(t *testing.T, n int) io.Reader {
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	go func() { _, _ = writer.Write(bytes.Repeat([]byte(" "), n)) }()
	return reader
}
