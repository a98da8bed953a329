// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// site is a web server that is an Artifact Hub below /api/v1 and serves the same Tasks as files
// elsewhere. Its answers can be changed; requests are counted.
type site struct {
	*httptest.Server
	mu      sync.Mutex
	answers http.HandlerFunc
	asked   int
}

func newSite(t *testing.T, answers http.HandlerFunc) *site {
	s := &site{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.get()(w, r) }))
	t.Cleanup(s.Close)
	return s
}

func (s *site) get() http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.answers
}

func (s *site) set(answers http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.asked = answers, 0
}

// awaitRequests waits until a site got n requests since its answers were set.
func (s *site) awaitRequests(env *environment, n int) {
	env.t.Helper()
	env.eventually(soon, "the reference was tried again", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked < n {
			return fmt.Errorf("%d times", s.asked)
		}
		return nil
	})
}

// servesTasks answers with texts by the last part of the path, as a hub's packages and as files.
func servesTasks(texts map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, found := texts[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		switch {
		case !found:
			w.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(r.URL.Path, "/api/v1/"):
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"manifestRaw": text}})
		default:
			_, _ = w.Write([]byte(text))
		}
	}
}

func answersStatus(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

func task(name, says string) string {
	return fmt.Sprintf("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: %s}\nspec: {steps: [{name: s, image: busybox, script: \"echo %s\"}]}\n", name, says)
}

// referring returns a pipeline whose one task is a reference.
func referring(name, event, task, reference string) string {
	text := pipeline(name, event, fmt.Sprintf("pipelinesascode.tekton.dev/task: %q", reference))
	start := strings.Index(text, "        taskSpec:")
	return text[:start] + "        taskRef: {name: " + task + "}\n"
}

// B4, B5: during an outage of the hub (5xx, 429, a broken connection) the pipelines that need it
// wait, with a check that says so and without failure or run; the others start. A missing task
// fails only the check of its pipeline.
func TestReferenceOutagesWait(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		hub := newSite(t, answersStatus(http.StatusInternalServerError))
		env := newClaimedEnvironment(t,
			setup{service: on, receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "hub-url", hub.URL}}})
		followsReferences(t, env, hub)
	})
}

// tryOutages makes the hub fail in other ways; the pipelines wait in all of them.
func (h *site) tryOutages(env *environment, sha string) {
	env.t.Helper()
	h.awaitRequests(env, 3)
	for _, outage := range []http.HandlerFunc{
		answersStatus(http.StatusBadGateway), answersStatus(http.StatusServiceUnavailable, "Retry-After", "1"),
		answersStatus(http.StatusTooManyRequests, "Retry-After", "1"),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		h.set(outage)
		h.awaitRequests(env, 1)
		if wait := env.awaitWait(sha, "plan"); wait.Class == "Operator" {
			env.t.Errorf("it waits for %+v, want the hub", wait)
		}
		env.requireNotStarted(sha, "on-the-hub")
	}
}

func followsReferences(t *testing.T, env *environment, h *site) {
	notOurs := env.git.create("shared", map[string]string{"secret.yaml": task("secret", "hidden")}, "secret.yaml")
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml":    referring("on-the-hub", "push", "lint", "lint"),
		".tekton/b.yaml":    referring("in-the-repository", "push", "own", "tasks/own.yaml"),
		".tekton/c.yaml":    referring("not-there", "push", "missing", "missing"),
		".tekton/d.yaml":    referring("not-public", "push", "x", "http://169.254.169.254/latest/meta-data"),
		".tekton/e.yaml":    referring("by-address", "push", "own", env.git.page("tasks/own.yaml")),
		".tekton/f.yaml":    referring("not-ours", "push", "secret", notOurs),
		".tekton/g.yaml":    referring("no-such-file", "push", "own", "tasks/none.yaml"),
		".tekton/local.yml": task("unused", "nothing"),
		"tasks/own.yaml":    task("own", "from the repository"),
	})
	for _, name := range []string{"on-the-hub", "not-there"} {
		check := env.awaitCheck(sha, checkName(name), "queued", soon)
		if !strings.HasPrefix(check.Title, "Waiting for what the pipeline refers to") || !check.Tells("("+h.URL) {
			t.Errorf("%s: %q %q, want what it waits for", name, check.Title, check.Text)
		}
	}
	for _, name := range []string{"in-the-repository", "by-address"} {
		env.awaitCheck(sha, checkName(name), "success", soon)
	}
	h.tryOutages(env, sha)
	env.requireOnlyStarted("by-address", "in-the-repository")
	h.set(servesTasks(map[string]string{"lint": task("lint", "from the hub")}))
	for name, says := range map[string]string{
		"not-there":  "missing (" + h.URL + "/api/v1/packages/tekton-task/tekton-catalog-tasks/missing)",
		"not-public": "169.254.169.254 is not fetched from",
		"not-ours":   strings.TrimPrefix(notOurs, env.git.url()),
		"no-such-file": "tasks/none.yaml does not exist in " + strings.TrimPrefix(env.git.page(), env.git.url()+"/") +
			" at commit " + sha,
	} {
		if check := env.awaitCheck(sha, checkName(name), "failure", afterFault); !check.Tells(says) {
			t.Errorf("check %s says %q %q %q, want %q", name, check.Title, check.Summary, check.Text, says)
		}
	}
	for _, name := range []string{"on-the-hub", "in-the-repository", "by-address"} {
		env.awaitCheck(sha, checkName(name), "success", afterFault)
	}
	env.awaitAllSettled(soon)
	env.requireRanOnce("on-the-hub")
	scripts := map[string]string{}
	for _, run := range env.runs() {
		scripts[run.Annotations["pipelinesascode.tekton.dev/original-prname"]] = run.Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Script
	}
	if len(scripts) != 3 || scripts["on-the-hub"] != "echo from the hub" ||
		scripts["in-the-repository"] != "echo from the repository" {
		t.Errorf("scripts %v", scripts)
	}
	env.requireInvariants()
}

// requireNotStarted requires that a pipeline has no PipelineRun and that its check, if there is
// one, is pending.
func (env *environment) requireNotStarted(sha, pipeline string) {
	env.t.Helper()
	for _, run := range env.runs() {
		if strings.HasPrefix(run.Name, pipeline) {
			env.t.Errorf("PipelineRun %s exists, want none of %s", run.Name, pipeline)
		}
	}
	for _, write := range env.checkWrites(sha, checkName(pipeline)) {
		if write.Conclusion != "" {
			env.t.Errorf("write %d concludes %q with %s", write.N, write.Name, write.Conclusion)
		}
	}
}
