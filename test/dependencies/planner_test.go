// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"strings"
	"testing"
)

// Tekton's types alone need parts of client-go, so what the planner may import is asked of our
// packages only.
func TestPlannerImportsNoClient(t *testing.T) {
	t.Parallel()
	packages, imports := product(t)
	const planner = "pkg/plan"
	seen := map[string]bool{planner: true}
	for todo := []string{planner}; len(todo) > 0; todo = todo[1:] {
		for _, path := range packages[todo[0]].Imports {
			if strings.HasPrefix(path, "k8s.io/client-go/") || path == "knative.dev/pkg/controller" {
				t.Errorf("%s, which %s needs, imports %s", todo[0], planner, path)
			}
		}
		for _, path := range imports[todo[0]] {
			if !seen[path] {
				seen[path], todo = true, append(todo, path)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%s needs only %d packages of ours: does it still exist?", planner, len(seen))
	}
}
