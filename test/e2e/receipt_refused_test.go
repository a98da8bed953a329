// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// marker is a text of a body that must not be found in a log.
const marker = "plumbline-e2e-body-of-a-stranger"

// A9: a delivery that nobody vouches for as the service does is answered 401; nothing is stored or called, and its body is
// in no log.
func TestA9BadSignature(t *testing.T) {
	t.Parallel()
	forBothServices(t, setup{receivers: 1, controllers: 1, proxied: true}, refusesForgeries)
}

func refusesForgeries(t *testing.T, w *world) {
	receiver := w.receivers[0]
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}, Message: marker})
	calls := len(receiver.Proxy.Calls())
	var cases map[string]delivery
	var secret string
	switch g := w.git.(type) {
	case *onGitHub:
		cases, secret = g.forgeries(), g.app.WebhookSecret
	case *onGitLab:
		cases, secret = g.forgeries(), hookSecret
	}
	for name, d := range cases {
		if a := w.sent(receiver, d); a.status != http.StatusUnauthorized || strings.Contains(a.body, marker) {
			t.Errorf("%s: answered %v, want 401 without the body", name, a)
		}
	}
	if n := w.counted(receiver, "rejected", "Unauthenticated"); n != len(cases) {
		t.Errorf("the metric counts %d unauthenticated deliveries, want %d", n, len(cases))
	}
	w.nothingStored("after unauthenticated deliveries")
	w.untouched("after unauthenticated deliveries")
	for _, call := range receiver.Proxy.Calls()[calls:] {
		// What names the secret is all that is looked at.
		if call.Verb == "create" || call.Verb == "get" && call.Resource != "repositories" {
			t.Errorf("an unauthenticated delivery made the call %s %s %s", call.Verb, call.Resource, call.Name)
		}
	}
	if log := w.log(receiver); strings.Contains(log, marker) || !strings.Contains(log, "Unauthenticated") {
		t.Error("the log quotes the body of an unauthenticated delivery, or does not tell of it")
	}
	if log := w.log(receiver); strings.Contains(log, secret) {
		t.Error("the log has the webhook secret")
	}
	if g, ok := w.git.(*onGitLab); ok {
		w.tellsNobodyWhoIsOnboarded(g)
	}
	w.deliver(w.again(), 202) // the right secret still opens the door
}

// S34: without the token nobody learns which private projects are onboarded. The log tells the operator.
func (w *world) tellsNobodyWhoIsOnboarded(g *onGitLab) {
	w.t.Helper()
	onboarded := g.PushDelivery(gitlab.PushEvent{Project: projectName, Ref: "refs/heads/main"})
	onboarded.SetToken("another secret")
	unknown := onboarded
	unknown.Body = bytes.ReplaceAll(onboarded.Body, []byte(projectName), []byte("strangers/app"))
	one, other := w.sent(w.receivers[0], onboarded), w.sent(w.receivers[0], unknown)
	for _, a := range []*answered{&one, &other} {
		a.header.Del("Date")
		a.took = 0
	}
	if diff := cmp.Diff(one, other, cmp.AllowUnexported(answered{})); diff != "" || one.status != http.StatusUnauthorized {
		w.t.Errorf("a stranger is told %v of a project that is onboarded and %v of one that is not: %s", one, other, diff)
	}
	if log := w.log(w.receivers[0]); !strings.Contains(log, "no Repository in this cluster has the URL") || !strings.Contains(log, "token does not match") {
		w.t.Error("the log does not tell the operator which of them it was")
	}
}

func (g *onGitHub) forgeries() map[string]delivery {
	cases := map[string]delivery{}
	for name, spoil := range map[string]func(*forge.Delivery){
		"the body was changed after it was signed": func(d *forge.Delivery) {
			d.Body = bytes.Replace(d.Body, []byte(marker), []byte(marker+"-changed"), 1)
		},
		"there is no signature":                    func(d *forge.Delivery) { d.Sign("") },
		"another secret signed it":                 func(d *forge.Delivery) { d.Sign("another secret") },
		"only the SHA-1 signature is there":        func(d *forge.Delivery) { d.Header.Del("X-Hub-Signature-256") },
		"the signature is the SHA-1 one, renamed":  func(d *forge.Delivery) { d.Header.Set("X-Hub-Signature-256", d.Header.Get("X-Hub-Signature")) },
		"the signature has no hexadecimal digits":  func(d *forge.Delivery) { d.Header.Set("X-Hub-Signature-256", "sha256=") },
		"two signatures, one of which is right":    func(d *forge.Delivery) { d.Header.Add("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64)) },
		"the event is one that nobody acts on":     func(d *forge.Delivery) { d.Header.Set("X-GitHub-Event", "star"); d.Sign("another secret") },
		"the repository is one that nobody claims": func(d *forge.Delivery) { *d = g.elsewhere(); d.Sign("another secret") },
	} {
		d := g.PushDelivery(forge.PushEvent{Repo: repoName, Ref: "refs/heads/main"})
		spoil(&d)
		cases[name] = d
	}
	return cases
}

// forgeries: GitLab vouches with a token for whoever sends it, and for no body.
func (g *onGitLab) forgeries() map[string]delivery {
	cases := map[string]delivery{}
	for name, spoil := range map[string]func(*gitlab.Delivery){
		"there is no token":                 func(d *gitlab.Delivery) { d.SetToken("") },
		"another token":                     func(d *gitlab.Delivery) { d.SetToken("another secret") },
		"a start of the token":              func(d *gitlab.Delivery) { d.SetToken(hookSecret[:len(hookSecret)-1]) },
		"the token in capitals":             func(d *gitlab.Delivery) { d.SetToken(strings.ToUpper(hookSecret)) },
		"two tokens, one of which is right": func(d *gitlab.Delivery) { d.Header.Add("X-Gitlab-Token", "another secret") },
		"the token of the API":              func(d *gitlab.Delivery) { d.SetToken(g.token.Value) },
		"the event is one that nobody acts on": func(d *gitlab.Delivery) {
			d.Header.Set("X-Gitlab-Event", "Pipeline Hook")
			d.SetToken("another secret")
		},
		"a signature as GitHub's, and no token": func(d *gitlab.Delivery) {
			d.SetToken("")
			d.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		},
	} {
		d := g.PushDelivery(gitlab.PushEvent{Project: projectName, Ref: "refs/heads/main"})
		spoil(&d)
		cases[name] = d
	}
	return cases
}

// A9: while there is no secret to verify a delivery with, because it is missing or cannot be read, the delivery is answered 503
// with Retry-After, not 401, whatever its signature; and it is taken when the secret can be read again.
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

// A10: what is not a delivery is refused for good: 400 when it cannot be decoded, 413 when it is
// over GitHub's 25 MiB, with or without a declared length; and nothing is stored.
func TestUndecodableAndTooBig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	const limit = 25 << 20
	w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	with := func(body string) delivery { return w.git.signed(w.again(), []byte(body), w.App.WebhookSecret) }
	nameless := w.again().(forge.Delivery)
	nameless.Header.Del("X-GitHub-Delivery")
	_, again := partsOf(w.again())
	whole := string(again)
	for name, d := range map[string]delivery{
		"not JSON":                    with("payload=1"),
		"half a body":                 with(whole[:len(whole)/2]),
		"two bodies":                  with(whole + whole),
		"no object":                   with(`[` + whole + `]`),
		"a push without a commit":     with(strings.Replace(whole, `"after":`, `"afterwards":`, 1)),
		"a repository without an id":  with(strings.Replace(whole, `"repository":{`, `"repository":{"id":"x",`, 1)),
		"no name to be recognised by": nameless,
	} {
		if a := w.sent(w.receivers[0], d); a.status != http.StatusBadRequest {
			t.Errorf("%s: answered %v, want 400", name, a)
		}
	}
	for name, body := range map[string]io.Reader{
		"one byte too big, with its length":   bytes.NewReader(make([]byte, limit+1)),
		"much too big, with its length":       bytes.NewReader(make([]byte, 2*limit)),
		"one byte too big, in chunks":         unannounced(limit + 1),
		"in chunks, and it does not even end": unending(t, limit+1),
	} {
		if a, err := w.stream(body); err != nil || a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: answered %v (%v), want 413", name, a, err)
		}
	}
	if n := w.counted(w.receivers[0], "rejected", "TooLarge"); n != 4 {
		t.Errorf("the metric counts %d bodies that are too big, want 4", n)
	}
	w.nothingStored("after what is not a delivery")
	w.untouched("after what is not a delivery")
	w.deliver(w.again(), 202) // the receiver is as it was
}

// stream posts a body as a delivery of the App: one with a length asks first whether it may be sent (a server that
// refuses it without reading it closes the connection, which may lose the answer), one without is sent in chunks.
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

// unannounced is a body of n bytes whose length nobody is told.
func unannounced(n int64) io.Reader {
	return struct{ io.Reader }{io.LimitReader(blanks{}, n)}
}

// unending is a body that stops after n bytes and is never over while the test runs.
func unending(t *testing.T, n int64) io.Reader {
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	go func() { _, _ = io.Copy(writer, unannounced(n)) }()
	return reader
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
