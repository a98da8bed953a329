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

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// site is a web server that is an Artifact Hub below /api/v1 and shows the same Tasks as files elsewhere. What it
// answers can be changed; requests are counted.
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

// met waits until a site that was set was asked n times.
func (s *site) met(w *world, n int) {
	w.t.Helper()
	w.eventually(soon, "the reference was tried again", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked < n {
			return fmt.Errorf("%d times", s.asked)
		}
		return nil
	})
}

// shows answers with texts by the last part of the path, as a hub's packages and as files.
func shows(texts map[string]string) http.HandlerFunc {
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

// B5: while a remote task cannot be fetched (5xx, 429, a broken connection, a page in front of the hub) its pipeline
// waits through all of it without failure and without a run, and then runs once; a pipeline without references does not
// wait for it.
func TestB5RemoteTaskOutage(t *testing.T) {
	t.Parallel()
	forEachKind(t, waitsForAReference)
}

func waitsForAReference(t *testing.T, on kind) {
	s := newSite(t, answersStatus(http.StatusInternalServerError))
	w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, config: [][3]string{
		{"plumbline", "hub-url", s.URL}, {"plumbline", "remote-allowed-hosts", "127.0.0.1"},
	}})
	w.claimed()
	sha, delivery := w.push(map[string]string{
		".tekton/a.yaml": referring("refers", "push", "lint", "lint"), ".tekton/b.yaml": pipeline("plain", "push", held),
	})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("plain"), "in_progress", soon)
	s.met(w, 3)
	outages := []http.HandlerFunc{
		answersStatus(http.StatusBadGateway), answersStatus(http.StatusServiceUnavailable, "Retry-After", "1"),
		answersStatus(http.StatusTooManyRequests, "Retry-After", "1"),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for _, outage := range outages {
		s.set(outage)
		s.met(w, 1)
		if wait := w.waits(sha, "plan"); !strings.Contains(wait.Message, "lint") || wait.Class == "Operator" {
			t.Errorf("it waits for %+v, want the reference lint", wait)
		}
		w.notStarted(sha, "refers")
	}
	s.set(shows(map[string]string{"lint": task("lint", "at last")}))
	w.release(w.eventOf(sha, "it is recorded", func(*v1alpha1.GitEvent) error { return nil }))
	w.checkReaches(sha, checkName("plain"), "success", soon)
	w.checkReaches(sha, checkName("refers"), "success", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.ranOnce("refers")
	w.ranOnce("plain")
	w.invariants()
}

// notStarted requires that a pipeline has no PipelineRun and that its check, if there is one, is open.
func (w *world) notStarted(sha, pipeline string) {
	w.t.Helper()
	for _, run := range w.runs() {
		if strings.HasPrefix(run.Name, pipeline) {
			w.t.Errorf("PipelineRun %s exists, want none of %s", run.Name, pipeline)
		}
	}
	for _, write := range w.writes(sha, checkName(pipeline)) {
		if write.Conclusion != "" {
			w.t.Errorf("write %d concludes %q with %s", write.N, write.Name, write.Conclusion)
		}
	}
}
