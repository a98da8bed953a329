// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

func TestIncomingIsRecorded(t *testing.T) {
	for name, c := range map[string]call{
		"secret in the header":          {bearer: incomingSecret, body: asked(`"params": {"version": "1.2"}`)},
		"secret in the body":            {body: asked(`"params": {"version": "1.2"}, "secret": "` + incomingSecret + `"`)},
		"a proxy's token in the header": {bearer: "for-the-proxy", body: asked(`"params": {"version": "1.2"}, "secret": "` + incomingSecret + `"`)},
		"both, with namespace": {bearer: incomingSecret, contentType: "application/json; charset=utf-8",
			body: asked(`"params": {"version": "1.2"}, "namespace": "ci", "secret": "` + incomingSecret + `"`)},
	} {
		t.Run(name, func(t *testing.T) {
			e := incomingEnv(t)
			answer := e.ask(e.incoming(), 202, c)
			event := e.wantEvents(1)[0]
			if answer.Message != "accepted" || answer.Event != event.Name || !strings.HasPrefix(event.Name, "incoming-") {
				t.Errorf("%+v for %s", answer, event.Name)
			}
			spec := event.Spec
			want := v1alpha1.GitEventSpec{
				Provider: "github", Host: "git.example", Trigger: "push", EventType: "incoming", Sender: "incoming",
				Repository: v1alpha1.RepositoryReference{Namespace: "ci", Name: "app", UID: "uid-1", URL: repositoryURL},
				Project:    v1alpha1.Project{Owner: "acme", Name: "app", URL: repositoryURL}, HeadURL: repositoryURL,
				BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
				Incoming:    &v1alpha1.Incoming{Pipeline: "build", Params: map[string]string{"version": "1.2"}},
				DeliveryKey: spec.DeliveryKey, Body: spec.Body, Payload: spec.Payload, ReceivedAt: spec.ReceivedAt,
			}
			if diff := cmp.Diff(want, spec); diff != "" {
				t.Error(diff)
			}
			if e.counted("recorded", "Recorded") != 1 {
				t.Error("it is not counted")
			}
		})
	}
}

// A11: every request that cannot be accepted gets one answer that says what to do.
func TestIncomingIsRefused(t *testing.T) {
	secret := `"secret": "` + incomingSecret + `"`
	for name, c := range map[string]struct {
		call
		status int
		says   string
	}{
		"GET":                 {call{method: "GET"}, 405, "send the request with POST"},
		"query parameters":    {call{path: "?repository=app&branch=main&pipelinerun=build&secret=x"}, 400, "not read, because URLs are logged: send POST /incoming with Content-Type: application/json"},
		"a form":              {call{contentType: "application/x-www-form-urlencoded", body: "a=b"}, 415, "set Content-Type: application/json"},
		"no JSON":             {call{body: "hello"}, 400, "not a JSON object"},
		"a list":              {call{body: "[]"}, 400, "not a JSON object"},
		"null":                {call{body: "null"}, 400, "missing required fields"},
		"two objects":         {call{body: "{}{}"}, 400, "not a JSON object"},
		"1 MB":                {call{body: asked(secret, `"params": {"version": "`+strings.Repeat("x", 1<<20)+`"}`)}, 413, "larger than 32 KiB"},
		"nothing":             {call{body: "{}"}, 400, "missing required fields: repository, branch, pipelinerun, secret"},
		"no secret":           {call{body: asked()}, 400, "missing required fields: secret"},
		"a number":            {call{body: `{"repository": 1}`}, 400, "the field repository is not a string"},
		"a number in params":  {call{body: asked(secret, `"params": {"version": 1}`)}, 400, "the param version is not a string"},
		"a list as params":    {call{body: asked(secret, `"params": [1]`)}, 400, "params is not an object"},
		"a URL":               {call{body: strings.Replace(asked(secret), `"app"`, `"https://git.example/acme/app"`, 1)}, 400, "not the URL"},
		"a path":              {call{body: strings.Replace(asked(secret), `"main"`, `"main/../../../../../../other/app/git/ref/heads/main"`, 1)}, 400, "not the name of a branch"},
		"a ref":               {call{body: strings.Replace(asked(secret), `"main"`, `"refs/tags/v1"`, 1)}, 400, "without refs/heads/"},
		"a pipeline's file":   {call{body: strings.Replace(asked(secret), `"build"`, `".tekton/build.yaml"`, 1)}, 400, "not the name of a PipelineRun"},
		"another branch":      {call{body: strings.Replace(asked(secret), `"main"`, `"topic"`, 1)}, 403, "no rule in spec.incoming of the Repository has a target"},
		"a param not allowed": {call{body: asked(secret, `"params": {"revision": "x"}`)}, 403, "the param revision is not allowed"},
		"too long a key":      {call{key: strings.Repeat("x", 300), body: asked(secret)}, 400, "Idempotency-Key is longer"},
		"a wrong secret":      {call{bearer: "guessed", body: asked()}, 401, "the request was not accepted"},
		"an unknown one":      {call{bearer: "guessed", body: strings.Replace(asked(), "app", "gone", 1)}, 401, "the request was not accepted"},
		"another namespace":   {call{body: asked(secret, `"namespace": "other"`)}, 401, "the request was not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			e := incomingEnv(t)
			if got := e.ask(e.incoming(), c.status, c.call); !strings.Contains(got.Message, c.says) {
				t.Errorf("answered %q, want %q in it", got.Message, c.says)
			}
			e.wantEvents(0)
		})
	}
}

// A sender that knows no secret cannot learn which Repositories there are.
func TestIncomingAnswersUnverifiedSendersAlike(t *testing.T) {
	e := incomingEnv(t)
	e.rules("ci", "without", repositoryURL)
	e.rules(
		"ci",
		"missing",
		repositoryURL,
		pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "gone"}, Targets: []string{"*"}},
	)
	e.rules("ci", "unnamed", repositoryURL, pacv1alpha1.Incoming{Targets: []string{"*"}})
	answers := map[string]bool{}
	for _, name := range []string{"app", "without", "missing", "unnamed", "unknown"} {
		for _, branch := range []string{"main", "topic"} {
			body := strings.NewReplacer("app", name, "main", branch).Replace(asked(`"namespace": "ci"`))
			answer := httptest.NewRecorder()
			h := e.incoming().AnswerUnverifiedAfter(20 * time.Millisecond)
			began := time.Now()
			h.ServeHTTP(answer, call{bearer: "guessed", body: body}.request())
			if time.Since(began) < 20*time.Millisecond {
				t.Errorf("%s is answered before the others", name)
			}
			answers[fmt.Sprint(answer.Code, answer.Header(), answer.Body)] = true
		}
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
}

// The first rule whose targets match decides: its secret, and its params.
func TestFirstIncomingRuleWins(t *testing.T) {
	rule := func(secret string, params []string, targets ...string) pacv1alpha1.Incoming {
		return pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: secret, Key: "k"}, Params: params, Targets: targets}
	}
	e := incomingEnv(t)
	e.store("ci", "one", map[string]string{"k": "first"})
	e.store("ci", "two", map[string]string{"k": "second", "k.previous": "before"})
	e.rules("ci", "app", repositoryURL,
		rule("one", []string{"a"}, "main", "release/*", `^v[0-9]+(\.[0-9]+)*$`, "[", "^("),
		rule("two", []string{"b"}, "{dev,test}/*", "*"))
	for name, c := range map[string]struct {
		branch, secret, param string
		status                int
	}{
		"exact":                     {"main", "first", "a", 202},
		"glob":                      {"release/1/2", "first", "a", 202},
		"regular expression":        {"v1.20", "first", "a", 202},
		"no regular expression":     {"v1x", "second", "b", 202},
		"the rest":                  {"dev/x", "second", "b", 202},
		"the previous secret":       {"dev/x", "before", "b", 202},
		"another rule's secret":     {"main", "second", "a", 403},
		"another rule's param":      {"main", "first", "b", 403},
		"another secret altogether": {"main", "third", "a", 401},
		"no param":                  {"topic", "second", "", 202},
	} {
		t.Run(name, func(t *testing.T) {
			params := "{}"
			if c.param != "" {
				params = `{"` + c.param + `": "x"}`
			}
			e.ask(e.incoming(), c.status, call{bearer: c.secret,
				body: strings.Replace(asked(`"params": `+params), `"main"`, `"`+c.branch+`"`, 1)})
		})
	}
}

// A Repository without rules has those of the global Repository, with its Secret.
func TestGlobalIncomingRulesAreInherited(t *testing.T) {
	e := incomingEnv(t)
	e.store(systemNamespace, "calls", map[string]string{"secret": "of all"})
	e.rules(
		systemNamespace,
		"global",
		"",
		pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "calls"}, Targets: []string{"main"}},
	)
	e.ask(e.incoming(), 401, call{bearer: "of all", body: asked()}) // it has rules of its own
	e.rules("ci", "app", repositoryURL)
	e.ask(e.incoming(), 202, call{bearer: "of all", body: asked()})
}

// Without a namespace, the secret decides between Repositories of one name.
func TestSecretDecidesBetweenRepositoriesOfOneName(t *testing.T) {
	e := incomingEnv(t)
	e.store("other", "calls", map[string]string{"secret": "of the other"})
	e.rules("other", "app", "https://git.example/other/app",
		pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "calls"}, Targets: []string{"main"}})
	e.ask(e.incoming(), 202, call{bearer: incomingSecret, body: asked()})
	if got := e.wantEvents(1)[0].Spec.Repository.Namespace; got != "ci" {
		t.Errorf("it is for namespace %s", got)
	}
	e.store("other", "calls", map[string]string{"secret": incomingSecret})
	if got := e.ask(
		e.incoming(),
		400,
		call{bearer: incomingSecret, body: asked()},
	); !strings.Contains(
		got.Message,
		"send namespace",
	) {
		t.Error(got.Message)
	}
	e.ask(e.incoming(), 202, call{bearer: incomingSecret, body: asked(`"namespace": "ci"`)})
}

// With a namespace, a request is for one Repository, however many have its name.
func TestNamespaceFindsOneOfManyRepositories(t *testing.T) {
	e := incomingEnv(t)
	for i := range 300 {
		e.rules(fmt.Sprintf("a-%d", i), "app", fmt.Sprintf("https://git.example/a/%d", i))
	}
	e.ask(e.incoming(), 202, call{bearer: incomingSecret, body: asked(`"namespace": "ci"`)})
}

func TestIdempotencyKeyRunsOnce(t *testing.T) {
	e := incomingEnv(t)
	one := call{bearer: incomingSecret, key: "night-1", body: asked(`"params": {"version": "1"}`)}
	first := e.ask(e.incoming(), 202, one)
	again := e.ask(e.incoming(), 202, one) // at another replica
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	e.wantEvents(1)
	other := one
	other.body = asked(`"params": {"version": "2"}`)
	if got := e.ask(e.incoming(), 422, other); !strings.Contains(got.Message, "another request") {
		t.Error(got.Message)
	}
	e.wantEvents(1)
	for range 2 { // without a key each request is an event
		e.ask(e.incoming(), 202, call{bearer: incomingSecret, body: asked()})
	}
	e.wantEvents(3)
}

func TestWrongSecretsAreLimited(t *testing.T) {
	e := incomingEnv(t)
	h := e.incoming()
	named := func(name string) string { return strings.Replace(asked(), "app", name, 1) }
	for _, name := range []string{"app", "unknown"} { // the limit does not show which exists
		for range 10 {
			e.ask(h, 401, call{bearer: "guessed", body: named(name)})
		}
		e.ask(h, 429, call{bearer: "guessed", body: named(name)})
	}
	e.ask(h, 429, call{bearer: incomingSecret, body: asked()}) // guessing must not succeed
	e.ask(h, 401, call{bearer: "guessed", body: named("other")})
	e.clock.SetTime(e.clock.Now().Add(6 * time.Second))
	e.ask(h, 202, call{bearer: incomingSecret, body: asked()})
}

// A sender who exceeds the rate of unverified requests with other names gets no more guesses: the
// requests over the rate count.
func TestFloodAllowsNoMoreGuesses(t *testing.T) {
	e := incomingEnv(t)
	h := e.incoming()
	send := func(c call) int {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, c.request())
		return answer.Code
	}
	var flood sync.WaitGroup
	for i := range 2 * receiver.UnverifiedBurst {
		flood.Go(func() {
			send(call{bearer: "guessed", body: strings.Replace(asked(), "app", fmt.Sprintf("invented-%d", i), 1)})
		})
	}
	flood.Wait()
	for range 10 {
		send(call{bearer: "guessed", body: asked()})
	}
	if got := send(call{bearer: incomingSecret, body: asked()}); got != 429 {
		t.Errorf("after ten guesses the right one is answered %d", got)
	}
}
