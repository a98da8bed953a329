// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// G7, L4: a replica of the Git service that has not seen the commit answers 404 for what is there, some times: .tekton, a
// file of it, and a file that a pipeline refers to. Nobody is told that it is missing, and the pipeline runs once the
// replica has caught up. A file that no directory of the commit lists is the author's mistake.
func TestAReplicaThatLagsTellsNobodyThatAFileIsMissing(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, waitsForAReplica)
}

func waitsForAReplica(t *testing.T, w *world) {
	about := func(part string) func(*http.Request) bool {
		return func(r *http.Request) bool { return strings.Contains(r.URL.Path, part) }
	}
	for _, lag := range []struct {
		name string
		at   operation
		of   string // in the address of what is not shown
	}{
		{"lag-of-the-directory", readDirectory, "tree"},
		{"lag-of-the-definition", readFile, ""},
		{"lag-of-the-reference", readReference, "tasks"},
	} {
		late := w.git.inject(lag.at, forge.Fault{Count: 2, Match: about(lag.of), Do: w.git.says(notFound)})
		sha, delivery := w.push(map[string]string{
			".tekton/run.yaml": referring(lag.name, "push", "build", "tasks/build.yaml"), "tasks/build.yaml": task("build", "hello"),
		})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName(lag.name), "success", afterFault)
		w.hit(late, 2)
		w.settles(sha, afterFault)
		w.neverFailed(sha)
		w.ranOnce(lag.name)
	}
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": referring("missing", "push", "none", "tasks/none.yaml")})
	w.deliver(delivery, http.StatusAccepted)
	check := w.checkReaches(sha, checkName("missing"), "failure", soon)
	if !check.Tells("tasks/none.yaml does not exist") {
		t.Errorf("the check does not say what is missing: %s", check.Text)
	}
}
