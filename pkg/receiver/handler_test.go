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
	e := newEnv(t)
	d := push("k1")
	e.expect(http.StatusAccepted, d)
	event := e.wantEvents(1)[0]
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
	if want := e.clock.Now().Truncate(time.Second); !event.Spec.ReceivedAt.Time.Equal(want) {
		t.Errorf("receivedAt %v, want %v", event.Spec.ReceivedAt, want)
	}
	if event.Spec.Payload.Chunks != 0 || e.payloads() != 0 || event.Spec.Headers["X-Test-Event"] != "push" {
		t.Errorf("payload %+v, headers %v", event.Spec.Payload, event.Spec.Headers)
	}
	if e.counted("recorded", "Recorded") != 1 || strings.Count(e.log(), `"delivery":"k1"`) != 1 {
		t.Errorf("want one log line and one count:\n%s", e.log())
	}
}

func TestBadSignature(t *testing.T) { // A9
	for name, signature := range map[string]string{"wrong": "0000",
		"of another secret": "x" + sign([]byte("x"), []byte("y"))} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			d := push("k1")
			d.signature = signature
			answer := e.expect(http.StatusUnauthorized, d)
			if actions := e.client.Actions(); len(actions) != 0 {
				t.Errorf("an unverified delivery caused %v", actions)
			}
			if strings.Contains(answer.Body.String(), sign(mustBody(d), []byte(webhookSecret))) {
				t.Error("the answer contains the right signature")
			}
			if e.counted("rejected", "Unauthenticated") != 1 {
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
			e := newEnv(t)
			e.copied = copied
			d := push("k1")
			d.signature = sign(mustBody(d), nil) // matches an empty secret
			e.expect(http.StatusServiceUnavailable, d)
			e.wantEvents(0)
			if e.counted("unavailable", reason) != 1 {
				t.Errorf("not counted as %s:\n%s", reason, e.log())
			}
			if reason == "SecretMissing" &&
				!strings.Contains(e.log(), "webhook.secret of Secret plumbline/plumbline-github-app: create it") {
				t.Errorf("no error names the Secret for the operator:\n%s", e.log())
			}
		})
	}
}

func TestNeverActedOn(t *testing.T) { // A12
	for reason, change := range map[string]func(e *env, d *delivery){
		"EventIgnored": func(_ *env, d *delivery) { d.event, d.message.URL = "ping", "" },
		"NoRepository": func(_ *env, d *delivery) { d.message.URL = "https://git.example/acme/unknown" },
		"OtherHost":    func(e *env, _ *delivery) { e.baseURL = "https://other.example" },
		"NotTheApp":    func(_ *env, d *delivery) { d.message.App = false },
	} {
		t.Run(reason, func(t *testing.T) {
			e := newEnv(t)
			d := push("k1")
			change(e, &d)
			e.expect(http.StatusOK, d)
			e.wantEvents(0)
			if e.counted("ignored", reason) != 1 {
				t.Errorf("not counted as ignored for %s:\n%s", reason, e.log())
			}
			if reads := len(e.client.Actions()) - 1; reason != "NoRepository" && reads != 0 { // 1: wantEvents
				t.Errorf("%d calls of the API server for a delivery that is never acted on", reads)
			}
		})
	}
}

func TestDeliveryOfAnotherHostIsIgnored(t *testing.T) {
	e := newEnv(t)
	d := push("k1")
	d.message.Host = "evil.example" // the URL is right, the rest of the payload is not
	e.expect(http.StatusOK, d)
	d = push("k1")
	d.message.URL = "https://evil.example/acme/app" // and the other way round
	e.expect(http.StatusOK, d)
	e.wantEvents(0)
	if e.counted("ignored", "OtherHost") != 2 {
		t.Errorf("not counted:\n%s", e.log())
	}

	e.baseURL = "" // the configuration has not been read yet
	e.expect(http.StatusServiceUnavailable, push("k2"))
}

func TestRefusedRequests(t *testing.T) {
	e := newEnv(t)
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
		"a GET":                 {get, http.StatusMethodNotAllowed, "POST"},
		"headers of no service": {noHeaders, http.StatusBadRequest, "no Git service recognises this request"},
		"a body that is not JSON": {
			delivery{event: "push", raw: []byte("x=" + bodyMarker)}.request(), http.StatusBadRequest, "JSON",
		},
		"a body without a needed field": {missing.request(), http.StatusBadRequest, "after: is missing"},
		"a URL with two readings":       {badURL.request(), http.StatusBadRequest, "repository's URL"},
		"an empty body":                 {cut, http.StatusBadRequest, "JSON"},
		"a panic": {delivery{event: "panic", key: "k", message: push("k").message}.request(),
			http.StatusServiceUnavailable, "could not be handled"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := e.send(e.replica(), c.request)
			e.check(c.status, answer)
			if !strings.Contains(answer.Body.String(), c.says) {
				t.Errorf("answer %s does not say %q", answer.Body, c.says)
			}
		})
	}
	e.wantEvents(0)
}

// live records nothing, and stores the error of its context.
type live struct{ err error }

func (l *live) CheckRate(string, bool, int) error { return nil }

func (l *live) Record(ctx context.Context, _ *v1alpha1.GitEventSpec, _ []byte) (string, bool, error) {
	l.err = ctx.Err()
	return "name", true, nil
}

func TestDeliveryIsRecordedWhenTheSenderHangsUp(t *testing.T) {
	e := newEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := &live{err: errors.New("not called")}
	h := e.replica()
	h.Recorder = recorder
	e.check(http.StatusAccepted, e.send(h, push("k1").request().WithContext(ctx)))
	if recorder.err != nil {
		t.Errorf("recording with a context that is %v", recorder.err)
	}
}

func TestLookup(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	timeout := context.DeadlineExceeded
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: 404,
		Reason:  metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{}}}
	for name, c := range map[string]struct {
		arrange func(e *env)
		status  int
	}{
		"the claim cannot be read": {
			func(e *env) { e.fail("get", "repositoryclaims", boom) }, http.StatusServiceUnavailable,
		},
		"the claim's read times out": {
			func(e *env) { e.fail("get", "repositoryclaims", timeout) }, http.StatusServiceUnavailable,
		},
		"claims are not served (CRD missing)": {
			func(e *env) { e.fail("get", "repositoryclaims", unserved) }, http.StatusServiceUnavailable,
		},
		"Repositories are not served": {
			func(e *env) { e.fail("get", "repositories", unserved) }, http.StatusServiceUnavailable,
		},
		"the Repository cannot be read": {
			func(e *env) { e.fail("get", "repositories", boom) }, http.StatusServiceUnavailable,
		},
		"the claim's Repository is deleted": {func(e *env) { e.remove("app") }, http.StatusOK},
		"the claim's Repository has a new URL": {
			func(e *env) { e.remove("app"); e.add("https://git.example/x/y") }, http.StatusOK,
		},
		"the Repository's URL is spelt differently": {
			func(e *env) { e.remove("app"); e.add("HTTPS://git.Example/Acme/app.git/") }, http.StatusAccepted,
		},
		"the cache knows, the API server fails": {
			func(e *env) { e.fillCache(); e.fail("get", "repositoryclaims", boom) }, http.StatusAccepted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			c.arrange(e)
			e.expect(c.status, push("k1"))
		})
	}
}

// fillCache copies the state of the API server to the cache.
func (e *env) fillCache() {
	e.cached = receiver.LiveView(plumblinefake.NewSimpleClientset(
		claim(repositoryURL, "ci", "app"), repository("ci", "app", repositoryURL)), systemNamespace, 0)
}

func (e *env) remove(name string) {
	e.t.Helper()
	if err := e.client.PipelinesascodeV1alpha1().Repositories("ci").Delete(e.t.Context(), name,
		metav1.DeleteOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) add(url string) {
	e.t.Helper()
	if _, err := e.client.PipelinesascodeV1alpha1().Repositories("ci").Create(e.t.Context(), repository("ci", "app", url),
		metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}
