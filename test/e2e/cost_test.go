// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// Issue 3: 200 PipelineRuns with path filters need one list of changed files, and each file is read once per event.
// `make bench-plan` shows the other costs.
func TestManyPathFiltersCostOneList(t *testing.T) {
	t.Parallel()
	const pipelines = 200
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	files := map[string]string{}
	for i := range pipelines {
		filter := fmt.Sprintf("%s/on-path-change: '[services/%03d/**]'", pipelinesascode.GroupName, i)
		files[fmt.Sprintf(".tekton/%03d.yaml", i)] = pipeline(fmt.Sprintf("service-%03d", i), "push", filter)
	}
	w.push(files)
	sha, delivery := w.push(map[string]string{"services/007/main.go": "package main", "services/150/main.go": "package main"})
	w.deliver(delivery, http.StatusAccepted)
	for _, name := range []string{"service-007", "service-150"} {
		w.checkReaches(sha, checkName(name), "success", soon)
	}
	w.settled(soon)
	w.started("service-007", "service-150")
	if got := w.count(listChanges); got != 1 {
		t.Errorf("%d lists of changed files, want 1", got)
	}
	reads := map[string]int{}
	for _, request := range w.git.log().requests {
		if request.Route == forge.RouteBlob || request.Route == forge.RouteContents {
			reads[request.Path]++
		}
	}
	if len(reads) != pipelines {
		t.Errorf("%d files were read, want the %d of .tekton", len(reads), pipelines)
	}
	for path, n := range reads {
		if n != 1 {
			t.Errorf("%s was read %d times, want once", path, n)
		}
	}
}
