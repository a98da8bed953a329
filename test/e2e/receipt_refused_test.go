// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// marker is a text of a body that must not be found in a log.
const marker = "plumbline-e2e-body-of-a-stranger"

// A9: a delivery whose signature is missing, wrong, or the old one only is answered 401; nothing is stored or called,
// and its body is in no log.
func TestA9BadSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	receiver := w.receivers[0]
	w.forge.Commit(repoName, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}, Message: marker})
	calls := len(receiver.Proxy.Calls())
	cases := map[string]func(*forge.Delivery){
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
		"the repository is one that nobody claims": func(d *forge.Delivery) { *d = w.elsewhere(); d.Sign("another secret") },
	}
	for name, spoil := range cases {
		d := w.again()
		spoil(&d)
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
		if call.Verb == "create" || call.Verb == "get" && call.Resource != "secrets" {
			t.Errorf("an unauthenticated delivery made the call %s %s %s", call.Verb, call.Resource, call.Name)
		}
	}
	if log := w.log(receiver); strings.Contains(log, marker) || !strings.Contains(log, "Unauthenticated") {
		t.Error("the log quotes the body of an unauthenticated delivery, or does not tell of it")
	}
	if log := w.log(receiver); strings.Contains(log, w.App.WebhookSecret) {
		t.Error("the log has the webhook secret")
	}
	w.deliver(w.again(), 202) // the right secret still opens the door
}

// A9: while the secret cannot be read or is missing, a delivery is answered 503 with Retry-After, not 401, whatever its
// signature; and it is taken when the secret can be read again.
func TestA9SecretUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true})
	w.claimed()
	receiver := w.receivers[0]
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	forged := w.again()
	forged.Sign("another secret")
	reads := func(c cluster.Call) bool { return c.Is("get", "secrets") }
	for name, do := range map[string]cluster.Action{
		"503":                        cluster.Fault(cluster.Unavailable()),
		"500":                        cluster.Fault(cluster.EtcdTimeout()),
		"403":                        cluster.Fault(cluster.Forbidden("system:serviceaccount:x:y", "get", w.Namespace)),
		"401":                        cluster.Fault(cluster.Unauthorized()),
		"no answer":                  cluster.Hold(nil),
		"the connection is dropped":  cluster.Drop(),
		"a read that lasts too long": cluster.Delay(answerLimit),
	} {
		rule := receiver.Proxy.Add(cluster.Rule{Match: reads, Do: do})
		w.sendAgain("reading the secret: "+name, w.sent(receiver, delivery))
		w.sendAgain("reading the secret for a forged delivery: "+name, w.sent(receiver, forged))
		if rule.Remove(); rule.Hits() < 2 {
			t.Errorf("reading the secret: %s: the fault was met %d times", name, rule.Hits())
		}
	}
	w.secretMissing(delivery)
	w.nothingStored("while the secret could not be read")
	w.untouched("while the secret could not be read")
	if a := w.sent(receiver, forged); a.status != http.StatusUnauthorized {
		t.Errorf("with the secret back a forged delivery is answered %v, want 401", a)
	}
	w.deliver(delivery, 202)
	w.checkReaches(sha, checkName("hello"), "success", afterFault)
	w.onlyOne(sha)
}

// secretMissing takes the Secret, then only its key away, and puts everything back.
func (w *world) secretMissing(d forge.Delivery) {
	w.t.Helper()
	secrets := w.Kube.CoreV1().Secrets(w.Namespace)
	secret, err := secrets.Get(w.ctx, "plumbline-github-app", metav1.GetOptions{})
	w.must(err)
	w.must(secrets.Delete(w.ctx, secret.Name, metav1.DeleteOptions{}))
	w.sendAgain("the Secret does not exist", w.sent(w.receivers[0], d))

	whole := secret.DeepCopy()
	secret.ObjectMeta = metav1.ObjectMeta{Name: secret.Name}
	delete(secret.Data, "webhook.secret")
	created, err := secrets.Create(w.ctx, secret, metav1.CreateOptions{})
	w.must(err)
	w.sendAgain("the Secret has no webhook.secret", w.sent(w.receivers[0], d))

	created.Data = whole.Data
	_, err = secrets.Update(w.ctx, created, metav1.UpdateOptions{})
	w.must(err)
	if n := w.counted(w.receivers[0], "unavailable", "SecretMissing"); n != 2 {
		w.t.Errorf("the metric counts %d deliveries without a secret, want 2", n)
	}
}

// elsewhere is a delivery of a new repository that the App is installed on and no Repository names.
func (w *world) elsewhere() forge.Delivery {
	const name = "acme/other"
	w.forge.CreateRepo("acme", "other", forge.RepoOptions{})
	w.forge.Install(w.App.ID, "acme", name)
	w.forge.Commit(name, "main", forge.Change{Files: map[string]string{".tekton/push.yaml": pipeline("hello", "push")}})
	return w.forge.PushDelivery(forge.PushEvent{Repo: name, Ref: "refs/heads/main"})
}

// A12: what is never acted on is answered 2xx with the reason, counted with the reason, and not stored.
func TestA12Ignorable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	receiver := w.receivers[0]
	number, _ := w.forkPull("stranger")
	w.forge.Commit(repoName, "gone", forge.Change{Files: map[string]string{"x": "y"}})
	w.forge.DeleteBranch(repoName, "gone", "octocat")
	w.forge.CreateTag(repoName, "v0", w.forge.Branches(repoName)["main"], "octocat")
	w.forge.DeleteTag(repoName, "v0", "octocat")
	body := func(extra map[string]any) map[string]any {
		extra["repository"] = map[string]any{"id": w.repo.ID, "name": "app", "full_name": repoName, "html_url": w.repo.HTMLURL, "owner": map[string]any{"login": "acme"}}
		extra["installation"] = map[string]any{"id": 1}
		return extra
	}
	for _, c := range []struct {
		what, reason string
		says         string // in the answer
		delivery     forge.Delivery
	}{
		{"a ping", "UnsupportedEvent", "ping", w.forge.PingDelivery(w.App.ID)},
		{"an event that starts nothing", "UnsupportedEvent", "star", w.forge.EventDelivery(w.App.ID, "star", body(map[string]any{"action": "created"}))},
		{"an installation event without repository", "UnsupportedEvent", "installation", w.forge.EventDelivery(w.App.ID, "installation", map[string]any{"action": "created", "installation": map[string]any{"id": 1}})},
		{"a pull request that is closed", "UnsupportedAction", "closed", w.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: "closed"})},
		{"a pull request that is edited", "UnsupportedAction", "edited", w.forge.PullRequestDelivery(forge.PullEvent{Repo: repoName, Number: number, Action: "edited"})},
		{"a branch that is deleted", "Deleted", "refs/heads/gone", w.forge.PushDelivery(forge.PushEvent{Repo: repoName, Ref: "refs/heads/gone"})},
		{"a tag that is deleted", "Deleted", "refs/tags/v0", w.forge.PushDelivery(forge.PushEvent{Repo: repoName, Ref: "refs/tags/v0"})},
		{"a repository that nobody claims", "NoRepository", "acme/other", w.elsewhere()},
	} {
		before := w.counted(receiver, "ignored", c.reason)
		status, answer := w.post(receiver, c.delivery)
		if status/100 != 2 || !strings.Contains(answer, c.says) {
			t.Errorf("%s: answered %d %s, want 2xx and a reason with %q", c.what, status, answer, c.says)
		}
		if after := w.counted(receiver, "ignored", c.reason); after != before+1 {
			t.Errorf("%s: the metric of %s went from %d to %d, want one more", c.what, c.reason, before, after)
		}
	}
	w.nothingStored("after ignorable events")
	w.untouched("after ignorable events")
	w.invariants()
}

// What is not a delivery is refused for good: 400 when it cannot be decoded, 413 when it is over GitHub's 25 MiB, with
// or without a declared length; and nothing is stored.
func TestUndecodableAndTooBig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	const limit = 25 << 20
	w.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	with := func(body string) forge.Delivery {
		d := w.again()
		d.Body = []byte(body)
		d.Sign(w.App.WebhookSecret)
		return d
	}
	nameless := w.again()
	nameless.Header.Del("X-GitHub-Delivery")
	whole := string(w.again().Body)
	for name, d := range map[string]forge.Delivery{
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
	request.Header = w.again().Header.Clone()
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
