// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// hub is an Artifact Hub and a web server. It counts the requests.
type hub struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	// fail returns the status to answer with, if it is set and not 0.
	fail func(path string) int
}

func newHub(t *testing.T) *hub {
	h := &hub{asked: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[r.URL.Path]++
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	code := http.StatusOK
	if h.fail != nil {
		code = max(h.fail(r.URL.Path), code)
	}
	if name == "missing" || name == "missing.yaml" {
		code = http.StatusNotFound
	}
	w.WriteHeader(code)
	if code != http.StatusOK {
		return
	}
	if text, isFile := strings.CutSuffix(name, ".yaml"); isFile {
		_, _ = fmt.Fprint(w, taskText(text))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"manifestRaw": taskText(name)}})
}

func (h *hub) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.asked)
}

func taskText(name string) string {
	return "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: " + name +
		"}\nspec: {steps: [{name: s, image: busybox, script: 'echo " + name + "'}]}\n"
}
