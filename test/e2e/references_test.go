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

// hub is an Artifact Hub that has every Task but those called "missing", and can be down.
type hub struct {
	*httptest.Server
	mu   sync.Mutex
	down bool
}

func newHub(t *testing.T) *hub {
	h := &hub{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case h.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case name == "missing":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"manifestRaw": task(name, "from the hub")}})
	}
}

func (h *hub) set(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

func task(name, says string) string {
	return fmt.Sprintf("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: %s}\nspec: {steps: [{name: s, image: busybox, script: \"echo %s\"}]}\n", name, says)
}

// referring is a pipeline whose one task is that of a reference.
func referring(name, event, task, reference string) string {
	text := pipeline(name, event, fmt.Sprintf("pipelinesascode.tekton.dev/task: %q", reference))
	start := strings.Index(text, "        taskSpec:")
	return text[:start] + "        taskRef: {name: " + task + "}\n"
}

// B4, B5: an outage of the hub is waited for by the pipelines that need it, with a check that says so; the others start.
// What is not there fails its own check only.
func TestReferences(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		h := newHub(t)
		w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "hub-url", h.URL}}})
		w.claimed()
		followsReferences(t, w, h)
	})
}

func followsReferences(t *testing.T, w *world, h *hub) {
	notOurs := w.git.create("shared", map[string]string{"secret.yaml": task("secret", "hidden")}, "secret.yaml")
	h.set(true)
	sha, delivery := w.push(map[string]string{
		".tekton/a.yaml":    referring("on-the-hub", "push", "lint", "lint"),
		".tekton/b.yaml":    referring("in-the-repository", "push", "own", "tasks/own.yaml"),
		".tekton/c.yaml":    referring("not-there", "push", "missing", "missing"),
		".tekton/d.yaml":    referring("not-public", "push", "x", "http://169.254.169.254/latest/meta-data"),
		".tekton/e.yaml":    referring("by-address", "push", "own", w.git.page("tasks/own.yaml")),
		".tekton/f.yaml":    referring("not-ours", "push", "secret", notOurs),
		".tekton/g.yaml":    referring("no-such-file", "push", "own", "tasks/none.yaml"),
		".tekton/local.yml": task("unused", "nothing"),
		"tasks/own.yaml":    task("own", "from the repository"),
	})
	w.deliver(delivery, http.StatusAccepted)
	for _, name := range []string{"on-the-hub", "not-there"} {
		check := w.checkReaches(sha, checkName(name), "queued", soon)
		if !strings.HasPrefix(check.Title, "Waiting for what the pipeline refers to") || !check.Tells("("+h.URL) {
			t.Errorf("%s: %q %q, want what it waits for", name, check.Title, check.Text)
		}
	}
	for _, name := range []string{"in-the-repository", "by-address"} {
		w.checkReaches(sha, checkName(name), "success", soon)
	}
	w.started("by-address", "in-the-repository")
	h.set(false)
	for name, says := range map[string]string{
		"not-there":    "missing (" + h.URL + "/api/v1/packages/tekton-task/tekton-catalog-tasks/missing)",
		"not-public":   "169.254.169.254 is not fetched from",
		"not-ours":     strings.TrimPrefix(notOurs, w.git.url()),
		"no-such-file": "tasks/none.yaml does not exist in " + strings.TrimPrefix(w.git.page(), w.git.url()+"/") + " at commit " + sha,
	} {
		if check := w.checkReaches(sha, checkName(name), "failure", afterFault); !check.Tells(says) {
			t.Errorf("check %s says %q %q %q, want %q", name, check.Title, check.Summary, check.Text, says)
		}
	}
	for _, name := range []string{"on-the-hub", "in-the-repository", "by-address"} {
		w.checkReaches(sha, checkName(name), "success", soon)
	}
	w.settled(soon)
	scripts := map[string]string{}
	for _, run := range w.runs() {
		scripts[run.Annotations["pipelinesascode.tekton.dev/original-prname"]] = run.Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Script
	}
	if len(scripts) != 3 || scripts["on-the-hub"] != "echo from the hub" || scripts["in-the-repository"] != "echo from the repository" {
		t.Errorf("scripts %v", scripts)
	}
	w.invariants()
}
