// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

const incomingSecret = "the-secret-of-incoming"

// incomingEnv is an env whose Repository ci/app accepts requests to /incoming for the branch main.
func incomingEnv(t *testing.T) *env {
	e := newEnv(t)
	e.store("ci", "calls", map[string]string{"secret": incomingSecret + "\n"})
	e.rules("ci", "app", repositoryURL, pacv1alpha1.Incoming{
		Type:    "webhook-url",
		Secret:  pacv1alpha1.Secret{Name: "calls"},
		Params:  []string{"version"},
		Targets: []string{"main"},
	})
	t.Cleanup(func() {
		if strings.Contains(e.log(), incomingSecret) {
			t.Errorf("a log line or an answer contains the secret:\n%s", e.log())
		}
		for _, event := range e.events() {
			if stored, err := json.Marshal(event); err != nil || strings.Contains(string(stored), incomingSecret) {
				t.Errorf("a GitEvent contains the secret: %s %v", stored, err)
			}
		}
	})
	return e
}

// rules replaces a Repository by one with these rules.
func (e *env) rules(namespace, name, url string, rules ...pacv1alpha1.Incoming) {
	e.t.Helper()
	r := repository(namespace, name, url)
	if rules != nil {
		r.Spec.Incomings = &rules
	}
	e.replace(r)
}

// incoming returns a replica that accepts requests to /incoming.
func (e *env) incoming() *receiver.Handler {
	h := e.replica()
	h.Providers = []provider.Provider{
		{Name: "github", Webhook: service{}}, {Name: "gitlab", Webhook: service{name: "Own"}, BaseURL: baseURL},
	}
	h.Lookup.Named = receiver.NamedIn(e.repositories())
	h.Services = receiver.Services{Global: func(ctx context.Context) (*pacv1alpha1.Repository, error) {
		global, err := e.client.PipelinesascodeV1alpha1().
			Repositories(systemNamespace).
			Get(ctx, "global", metav1.GetOptions{})
		if err != nil {
			return nil, nil //nolint:nilerr // there is none
		}
		return global, nil
	}, Copies: e.copies()}
	return h
}

// call is a request to /incoming.
type call struct {
	method, path, contentType, bearer, key, body string
}

func (c call) request() *http.Request {
	method, path, contentType := c.method, c.path, c.contentType
	if method == "" {
		method = http.MethodPost
	}
	if contentType == "" {
		contentType = "application/json"
	}
	r := httptest.NewRequest(method, "/incoming"+path, strings.NewReader(c.body))
	r.Header.Set("Content-Type", contentType)
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	if c.key != "" {
		r.Header.Set("Idempotency-Key", c.key)
	}
	return r
}

// asked is the body of a request, with more fields in JSON.
func asked(more ...string) string {
	return `{"repository": "app", "branch": "main", "pipelinerun": "build"` + strings.Join(
		append([]string{""}, more...),
		", ",
	) + `}`
}

// said is the answer to a request.
type said struct {
	Status       int
	Message      string
	Event        string
	PipelineRuns []struct{ Namespace, Name string }
}

// ask sends a request and checks the status of the answer.
func (e *env) ask(h http.Handler, status int, c call) said {
	e.t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, c.request())
	_, _ = e.Write(answer.Body.Bytes()) // a buffer
	var out said
	if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || out.Status != answer.Code || out.Message == "" {
		e.t.Errorf("the body is %q (%v)", answer.Body.String(), err)
	}
	if answer.Code != status {
		e.t.Errorf("answered %d %s, want %d", answer.Code, out.Message, status)
	}
	if retry := answer.Header().Get("Retry-After"); (retry != "") != (status == 503 || status == 429) {
		e.t.Errorf("Retry-After %q with %d", retry, status)
	}
	return out
}

// plansAs makes the handler's events planned, each with this status.
func plansAs(h *receiver.Handler, e *env, status v1alpha1.GitEventStatus) {
	h.Event = func(ctx context.Context, name string) (*v1alpha1.GitEvent, error) {
		event, err := e.client.PlumblineV1alpha1().GitEvents(systemNamespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			event.Status = status
		}
		return event, err
	}
}
