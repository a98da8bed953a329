// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

func TestAcceptedDeliveryIsDurable(t *testing.T) {
	w := newEnv(t)
	d := push("k1")
	w.expect(http.StatusAccepted, d)
	event := w.wantEvents(1)[0]
	body, err := blob.Unpack(event.Payload, event.Spec.Payload)
	if err != nil || !bytes.Contains(body, []byte(bodyMarker)) {
		t.Errorf("payload %q, %v; want the body", body, err)
	}
	if want := v1alpha1.EventName("push", "test", "git.example", "k1"); event.Name != want {
		t.Errorf("named %q, want %q", event.Name, want)
	}
	wantRepository := v1alpha1.RepositoryReference{Namespace: "ci", Name: "app", UID: "uid-1", URL: repositoryURL}
	if diff := cmp.Diff(wantRepository, event.Spec.Repository); diff != "" {
		t.Errorf("repository: %s", diff)
	}
	if want := w.clock.Now().Truncate(time.Second); !event.Spec.ReceivedAt.Time.Equal(want) {
		t.Errorf("receivedAt %v, want %v", event.Spec.ReceivedAt, want)
	}
	if event.Spec.Payload.Chunks != 0 || w.payloads() != 0 || event.Spec.Headers["X-Test-Event"] != "push" {
		t.Errorf("payload %+v, headers %v", event.Spec.Payload, event.Spec.Headers)
	}
	if w.counted("recorded", "Recorded") != 1 || strings.Count(w.log(), `"delivery":"k1"`) != 1 {
		t.Errorf("want one log line and one count:\n%s", w.log())
	}
}

func TestBadSignature(t *testing.T) { // A9
	for name, signature := range map[string]string{"wrong": "0000", "of another secret": "x" + sign([]byte("x"), []byte("y"))} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			d := push("k1")
			d.signature = signature
			answer := w.expect(http.StatusUnauthorized, d)
			if actions := w.client.Actions(); len(actions) != 0 {
				t.Errorf("an unverified delivery caused %v", actions)
			}
			if strings.Contains(answer.Body.String(), sign(mustBody(d), []byte(webhookSecret))) {
				t.Error("the answer holds the right signature")
			}
			if w.counted("rejected", "Unauthenticated") != 1 {
				t.Error("not counted")
			}
		})
	}
}

func mustBody(d delivery) []byte {
	var b bytes.Buffer
	_, _ = b.ReadFrom(d.request().Body) // a buffer
	return b.Bytes()
}

func TestUnreadableSecretIs503(t *testing.T) { // A9: 503, not 401
	for reason, copied := range map[string]map[string]map[string]string{
		"NotCopiedYet":  nil,
		"SecretMissing": {systemNamespace + "/plumbline-github-app": {"other": "x", "webhook.secret": " \n"}},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newEnv(t)
			w.copied = copied
			d := push("k1")
			d.signature = sign(mustBody(d), nil) // what verifies when an empty secret is used
			w.expect(http.StatusServiceUnavailable, d)
			w.wantEvents(0)
			if w.counted("unavailable", reason) != 1 {
				t.Errorf("not counted as %s:\n%s", reason, w.log())
			}
			if reason == "SecretMissing" && !strings.Contains(w.log(), "webhook.secret of Secret plumbline/plumbline-github-app: create it") {
				t.Errorf("no error names the Secret for the operator:\n%s", w.log())
			}
		})
	}
}

func TestNeverActedOn(t *testing.T) { // A12
	for reason, change := range map[string]func(w *env, d *delivery){
		"EventIgnored": func(_ *env, d *delivery) { d.event, d.message.URL = "ping", "" },
		"NoRepository": func(_ *env, d *delivery) { d.message.URL = "https://git.example/acme/unknown" },
		"OtherHost":    func(w *env, _ *delivery) { w.baseURL = "https://other.example" },
		"NotTheApp":    func(_ *env, d *delivery) { d.message.App = false },
	} {
		t.Run(reason, func(t *testing.T) {
			w := newEnv(t)
			d := push("k1")
			change(w, &d)
			w.expect(http.StatusOK, d)
			w.wantEvents(0)
			if w.counted("ignored", reason) != 1 {
				t.Errorf("not counted as ignored for %s:\n%s", reason, w.log())
			}
			if reads := len(w.client.Actions()) - 1; reason != "NoRepository" && reads != 0 { // 1: wantEvents
				t.Errorf("%d calls of the API server for what is never acted on", reads)
			}
		})
	}
}

func TestHostOfTheEventMustBeTheConfiguredOne(t *testing.T) {
	w := newEnv(t)
	d := push("k1")
	d.message.Host = "evil.example" // the URL is right, the rest of the payload is not
	w.expect(http.StatusOK, d)
	d = push("k1")
	d.message.URL = "https://evil.example/acme/app" // and the other way round
	w.expect(http.StatusOK, d)
	w.wantEvents(0)
	if w.counted("ignored", "OtherHost") != 2 {
		t.Errorf("not counted:\n%s", w.log())
	}

	w.baseURL = "" // the configuration has not been read yet
	w.expect(http.StatusServiceUnavailable, push("k2"))
}

func TestRefusedRequests(t *testing.T) {
	w := newEnv(t)
	noHeaders := push("k").request()
	noHeaders.Header = http.Header{}
	missing := push("k")
	missing.message.SHA = ""
	badURL := push("k")
	badURL.message.URL = "https://git.example/a/../b"
	cut := push("k").request()
	cut.Body, cut.ContentLength = http.NoBody, 100
	get := push("k").request()
	get.Method = http.MethodGet
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		says    string
	}{
		"a GET":                         {get, http.StatusMethodNotAllowed, "POST"},
		"headers of no service":         {noHeaders, http.StatusBadRequest, "no Git service recognises this request"},
		"a body that is not JSON":       {delivery{event: "push", raw: []byte("x=" + bodyMarker)}.request(), http.StatusBadRequest, "JSON"},
		"a body without a needed field": {missing.request(), http.StatusBadRequest, "after: is missing"},
		"a URL with two readings":       {badURL.request(), http.StatusBadRequest, "repository's URL"},
		"an empty body":                 {cut, http.StatusBadRequest, "JSON"},
		"a panic":                       {delivery{event: "panic", key: "k", message: push("k").message}.request(), http.StatusServiceUnavailable, "could not be handled"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.send(w.replica(), c.request)
			w.check(c.status, answer)
			if !strings.Contains(answer.Body.String(), c.says) {
				t.Errorf("answer %s does not say %q", answer.Body, c.says)
			}
		})
	}
	w.wantEvents(0)
}

// live records nothing and reports whether its context still was.
type live struct{ err error }

func (l *live) CheckRate(string, bool, int) error { return nil }

func (l *live) Record(ctx context.Context, _ *v1alpha1.GitEventSpec, _ []byte) (string, bool, error) {
	l.err = ctx.Err()
	return "name", true, nil
}

func TestSenderThatHangsUpIsRecorded(t *testing.T) {
	w := newEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := &live{err: errors.New("not called")}
	h := w.replica()
	h.Recorder = recorder
	w.check(http.StatusAccepted, w.send(h, push("k1").request().WithContext(ctx)))
	if recorder.err != nil {
		t.Errorf("recording with a context that is %v", recorder.err)
	}
}

func TestLookup(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	timeout := context.DeadlineExceeded
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}}}
	for name, c := range map[string]struct {
		arrange func(w *env)
		status  int
	}{
		"the claim cannot be read":              {func(w *env) { w.fail("get", "repositoryclaims", boom) }, http.StatusServiceUnavailable},
		"the claim's read times out":            {func(w *env) { w.fail("get", "repositoryclaims", timeout) }, http.StatusServiceUnavailable},
		"claims are not served (CRD missing)":   {func(w *env) { w.fail("get", "repositoryclaims", unserved) }, http.StatusServiceUnavailable},
		"Repositories are not served":           {func(w *env) { w.fail("get", "repositories", unserved) }, http.StatusServiceUnavailable},
		"the Repository cannot be read":         {func(w *env) { w.fail("get", "repositories", boom) }, http.StatusServiceUnavailable},
		"the claim's Repository is gone":        {func(w *env) { w.remove("app") }, http.StatusOK},
		"the claim's Repository has a new URL":  {func(w *env) { w.remove("app"); w.add("https://git.example/x/y") }, http.StatusOK},
		"the Repository's URL is spelt anyhow":  {func(w *env) { w.remove("app"); w.add("HTTPS://git.Example/Acme/app.git/") }, http.StatusAccepted},
		"the cache knows, the API server fails": {func(w *env) { w.fillCache(); w.fail("get", "repositoryclaims", boom) }, http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			c.arrange(w)
			w.expect(c.status, push("k1"))
		})
	}
}

// fillCache makes the cache know what the API server has.
func (w *env) fillCache() {
	w.cached = receiver.LiveView(plumblinefake.NewSimpleClientset(
		claim(repositoryURL, "ci", "app"), repository("ci", "app", repositoryURL)), systemNamespace, 0)
}

func (w *env) remove(name string) {
	w.t.Helper()
	if err := w.client.PipelinesascodeV1alpha1().Repositories("ci").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *env) add(url string) {
	w.t.Helper()
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories("ci").Create(w.t.Context(), repository("ci", "app", url), metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
