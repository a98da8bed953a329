// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// The answer names the PipelineRuns once they are planned, or says why there are none.
func TestAnswerSaysWhatIsPlanned(t *testing.T) {
	e := incomingEnv(t)
	h := e.incoming()
	plansAs(h, e, v1alpha1.GitEventStatus{Plan: &v1alpha1.Plan{Message: "1 of 2"}, Runs: []v1alpha1.Run{
		{Namespace: "ci", Name: "build-x"},
	}})
	c := call{bearer: incomingSecret, body: asked()}
	got := e.ask(h, 202, c)
	if len(got.PipelineRuns) != 1 || got.PipelineRuns[0].Name != "build-x" || got.PipelineRuns[0].Namespace != "ci" ||
		got.Message != "accepted" {
		t.Errorf("%+v", got)
	}
	plansAs(
		h,
		e,
		v1alpha1.GitEventStatus{Plan: &v1alpha1.Plan{Message: "nothing was started: no pipeline is called build"}},
	)
	if got := e.ask(h, 422, c); !strings.Contains(got.Message, "no pipeline is called build") || got.Event == "" {
		t.Errorf("%+v", got)
	}
	plansAs(
		h,
		e,
		v1alpha1.GitEventStatus{
			Runs: []v1alpha1.Run{{Refused: &v1alpha1.Refusal{Message: "line 3 is no YAML"}}},
			Plan: &v1alpha1.Plan{},
		},
	)
	if got := e.ask(h, 422, c); got.Message != "line 3 is no YAML" {
		t.Errorf("%+v", got)
	}
}

// An event that was deleted long ago is not waited for: a request with its Idempotency-Key is
// answered at once.
func TestAnswerDoesNotWaitForDeletedEvent(t *testing.T) {
	e := incomingEnv(t)
	h := e.incoming()
	reads := 0
	h.Event = func(_ context.Context, name string) (*v1alpha1.GitEvent, error) {
		reads++
		return nil, apierrors.NewNotFound(v1alpha1.Resource("gitevents"), name)
	}
	got := e.ask(h, 202, call{bearer: incomingSecret, body: asked()})
	if got.Event == "" || got.PipelineRuns != nil || reads != 1 {
		t.Errorf("%+v after %d reads", got, reads)
	}
}

// A11: nothing is accepted that is not durable, and a Repository that does not own its URL starts
// nothing.
func TestIncomingIsNotAcceptedBeforeItIsDurable(t *testing.T) {
	c := call{bearer: incomingSecret, body: asked()}
	for name, row := range map[string]struct {
		harm   func(e *env)
		status int
	}{
		"the event is not written": {func(e *env) { e.fail("create", "gitevents", apierrors.NewInternalError(fmt.Errorf("etcd"))) }, 503},
		"no secret is copied yet":  {func(e *env) { e.copied = nil }, 503},
		"the URL is another's": {func(e *env) {
			e.rules("ci", "owner", repositoryURL)
			claims := v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims")
			_ = e.client.Tracker().Delete(claims, systemNamespace, v1alpha1.ClaimName(repositoryURL))
			_ = e.client.Tracker().Add(claim(repositoryURL, "ci", "owner"))
		}, 409},
		"another service":  {func(e *env) { e.baseURL = "https://elsewhere.example" }, 422},
		"no configuration": {func(e *env) { e.baseURL = "" }, 503},
	} {
		t.Run(name, func(t *testing.T) {
			e := incomingEnv(t)
			row.harm(e)
			e.ask(e.incoming(), row.status, c)
			if events := e.events(); len(events) > 0 {
				t.Errorf("recorded as %s", events[0].Name)
			}
		})
	}
}

// The requests of Konflux's build-service, as TriggerPaCBuild in
// internal/controller/component_build_controller_pac.go of konflux-ci/build-service makes them: of
// versions up to commit 07a1e790, and of later ones, which send the namespace. They are for a
// Repository as its updateIncoming writes it. It accepts the answers 200 and 202.
func TestKonfluxBuildServiceStartsABuild(t *testing.T) {
	const url = "https://git.example/konflux/comp"
	for name, body := range map[string][]byte{
		"without namespace": fmt.Appendf(nil, "{\"params\": {\"source_url\": \"%s\"}, \"secret\": \"%s\", "+
			"\"repository\": \"%s\", \"branch\": \"%s\", \"pipelinerun\": \"%s\"}", url, incomingSecret, "comp", "main", "comp-on-push"),
		"with namespace": fmt.Appendf(nil, `{"params": {"source_url": "%s"}, "secret": "%s", "repository": "%s", `+
			`"branch": "%s", "pipelinerun": "%s", "namespace": "%s"}`, url, incomingSecret, "comp", "main", "comp-on-push", "tenant"),
	} {
		t.Run(name, func(t *testing.T) {
			e := incomingEnv(t)
			e.store("tenant", "comp-incoming", map[string]string{"incoming-secret": incomingSecret})
			e.rules("tenant", "comp", url, pacv1alpha1.Incoming{
				Type: "webhook-url", Secret: pacv1alpha1.Secret{Name: "comp-incoming", Key: "incoming-secret"},
				Targets: []string{"main"}, Params: []string{"source_url"},
			})
			if err := e.client.Tracker().Add(claim(url, "tenant", "comp")); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(receiver.NewServer(e.incoming(), nil).Handler())
			defer server.Close()
			answer, err := http.Post(server.URL+"/incoming", "application/json", bytes.NewBuffer(body))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 && answer.StatusCode != 202 {
				t.Fatalf("answered %d %s", answer.StatusCode, text)
			}
			spec := e.wantEvents(1)[0].Spec
			if spec.Incoming.Pipeline != "comp-on-push" || spec.Incoming.Params["source_url"] != url ||
				spec.BaseRef != "refs/heads/main" || spec.Repository.Namespace != "tenant" {
				t.Errorf("%+v", spec)
			}
		})
	}
}

// A request for a Repository that Pipelines-as-Code serves goes there as it is. Without a
// namespace, it goes there only if no Repository of this installation has the name:
// Pipelines-as-Code refuses a name that two Repositories have.
func TestIncomingIsForwarded(t *testing.T) {
	const legacy = "?repository=app&namespace=theirs&branch=main&pipelinerun=build&secret=x"
	for name, c := range map[string]struct {
		call
		status    int
		forwarded int64
	}{
		"their namespace":           {call{bearer: "x", body: asked(`"namespace": "theirs"`)}, 202, 1},
		"query parameters":          {call{path: legacy, contentType: "text/plain"}, 202, 1},
		"no namespace, our secret":  {call{bearer: incomingSecret, body: asked()}, 202, 0},
		"no namespace, another":     {call{bearer: "x", body: asked()}, 401, 0},
		"no namespace, their name":  {call{bearer: "x", body: strings.Replace(asked(), "app", "lib", 1)}, 202, 1},
		"our namespace":             {call{bearer: "x", body: asked(`"namespace": "ci"`)}, 401, 0},
		"the name of no Repository": {call{bearer: "x", body: strings.Replace(asked(), "app", "gone", 1)}, 401, 0},
		"GET":                       {call{method: "GET", path: legacy}, 405, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := incomingEnv(t)
			e.rules("theirs", "app", "https://git.example/theirs/app")
			e.rules("theirs", "lib", "https://git.example/theirs/lib")
			o := e.besides("theirs", 202)
			h := e.incoming()
			h.Lookup.Named = receiver.NamedIn(e.served())
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, c.request())
			if answer.Code != c.status || o.requests.Load() != c.forwarded {
				t.Fatalf("answered %d %s, and %d were forwarded", answer.Code, answer.Body, o.requests.Load())
			}
			if c.forwarded == 1 && (o.body != c.body || o.target != "POST /incoming"+c.path ||
				o.header.Get("Authorization") != c.request().Header.Get("Authorization")) {
				t.Errorf("%s with %v: %s", o.target, o.header, o.body)
			}
			again := c.request()
			again.Header.Set("Plumbline-Forwarded", "1")
			answer = httptest.NewRecorder()
			if h.ServeHTTP(answer, again); answer.Code != http.StatusLoopDetected {
				t.Errorf("a forwarded request is answered %d", answer.Code)
			}
		})
	}
}
