// SPDX-License-Identifier: Apache-2.0

// Package dependencies holds the rules about what may depend on what that an import list alone does
// not show.
package dependencies

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/testcache"
)

const module = "github.com/plumbline-ci/plumbline/"

// track makes a cached result end with a change in what go list reads.
func track(t *testing.T, patterns ...string) {
	t.Helper()
	if err := testcache.Packages(t.Context(), root, patterns...); err != nil {
		t.Fatal(err)
	}
}

// reachable returns, for each package of the product, every package that it needs.
func reachable(t *testing.T) map[string][]string {
	t.Helper()
	track(t, module+"pkg/...", module+"cmd/...")
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", module+"pkg/...", module+"cmd/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		all[names[0]] = names[1:]
	}
	return all
}

func TestDependencyDirection(t *testing.T) {
	t.Parallel()
	const github, gitlab = "github.com/google/go-github/v60/github", "github.com/xanzy/go-gitlab"
	const controller = "knative.dev/pkg/controller" // 500 packages, which every test of a pure package would link
	reconcilers := []string{module + "pkg/reconciler/gitevent", module + "pkg/reconciler/repository", module + "pkg/reconciler/sweep"}
	tests := []struct {
		sentence, pkg string
		never         []string
	}{
		{"no receiver runs under leases or creates PipelineRuns", module + "cmd/receiver",
			append([]string{"knative.dev/pkg/injection/sharedmain", module + "pkg/runtime/leaderelection", "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"}, reconcilers...)},
		{"the receiver's package knows no Git service and reconciles nothing", module + "pkg/receiver", []string{controller, github, gitlab, module + "pkg/provider/github", module + "pkg/provider/gitlab"}},
		{"the planner knows no Git service, no reconciler and nothing that asks the API server", module + "pkg/plan", append([]string{controller, "k8s.io/client-go/kubernetes", github, gitlab, module + "pkg/store/plans", module + "pkg/store/gitevents", module + "pkg/credentials", module + "pkg/reconciler/gitevent/attempt"}, reconcilers...)},
		{"the gitevent reconciler knows no Git service and no other reconciler", module + "pkg/reconciler/gitevent", []string{github, gitlab, reconcilers[1], reconcilers[2]}},
		{"the repository reconciler knows no Git service and no other reconciler", module + "pkg/reconciler/repository", []string{github, gitlab, reconcilers[0], reconcilers[2]}},
		{"the sweep knows no Git service and no other reconciler", module + "pkg/reconciler/sweep", []string{github, gitlab, reconcilers[0], reconcilers[1]}},
		{"the command line plans without a reconciler", module + "cmd/plumb", append([]string{controller}, reconcilers...)},
		{"an error means what it means without a controller", module + "pkg/fault", []string{controller, "k8s.io/client-go/tools/cache"}},
		{"the fair queue knows no controller", module + "pkg/flowcontrol/fairqueue", []string{controller}},
		{"credentials know no queue", module + "pkg/credentials", []string{module + "pkg/flowcontrol/fairqueue"}},
		{"a Git service knows no controller", module + "pkg/provider/github", []string{controller}},
		{"matching knows no controller, no Git service and no file", module + "pkg/pipeline/match", []string{controller, module + "pkg/provider", module + "pkg/pipeline/resolve"}},
		{"expressions know nothing of ours but globs and faults", module + "pkg/pipeline/cel", []string{module + "pkg/provider", module + "pkg/apis/plumbline/v1alpha1", module + "pkg/pipeline/match"}},
		{"access knows no Git service", module + "pkg/authz/rules", []string{module + "pkg/provider"}},
		{"the verdict knows no Git service and no reconciler", module + "pkg/status", append([]string{module + "pkg/provider", module + "pkg/pipeline/resolve"}, reconcilers...)},
		{"the kinds depend on nothing of ours but themselves", module + "pkg/apis/plumbline/v1alpha1", []string{module + "pkg/fault", module + "pkg/status"}},
	}
	all := reachable(t)
	for _, test := range tests {
		t.Run(test.sentence, func(t *testing.T) {
			t.Parallel()
			if len(all[test.pkg]) == 0 {
				t.Fatalf("go list does not list %s", test.pkg)
			}
			for _, forbidden := range test.never {
				if slices.Contains(all[test.pkg], forbidden) {
					t.Errorf("%s depends on %s", test.pkg, forbidden)
				}
			}
		})
	}
}
