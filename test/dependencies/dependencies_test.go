// SPDX-License-Identifier: Apache-2.0

// Package dependencies holds the rules about what may depend on what that an import list alone does
// not show.
package dependencies

import (
	"slices"
	"testing"
)

const module = "github.com/plumbline-ci/plumbline/"

func TestDependencyDirection(t *testing.T) {
	t.Parallel()
	const github, gitlab = "github.com/google/go-github/v60/github", "github.com/xanzy/go-gitlab"
	const controller = "knative.dev/pkg/controller" // 500 packages, which every test of a pure package would link
	reconcilers := []string{
		module + "pkg/reconciler/gitevent", module + "pkg/reconciler/repository", module + "pkg/reconciler/sweep",
	}
	tests := []struct {
		sentence, pkg string
		never         []string
	}{
		{"no receiver runs under leases or creates PipelineRuns", "cmd/receiver",
			append([]string{"knative.dev/pkg/injection/sharedmain", module + "pkg/runtime/leaderelection",
				"github.com/tektoncd/pipeline/pkg/client/clientset/versioned"}, reconcilers...)},
		{"the receiver's package knows no Git service and reconciles nothing", "pkg/receiver",
			[]string{controller, github, gitlab, module + "pkg/provider/github", module + "pkg/provider/gitlab"}},
		{"the planner knows no Git service, no reconciler and nothing that asks the API server", "pkg/plan", append([]string{
			controller, "k8s.io/client-go/kubernetes", github, gitlab, module + "pkg/store/plans",
			module + "pkg/store/gitevents", module + "pkg/credentials", module + "pkg/reconciler/gitevent/attempt",
		}, reconcilers...)},
		{"the gitevent reconciler knows no Git service and no other reconciler", "pkg/reconciler/gitevent",
			[]string{github, gitlab, reconcilers[1], reconcilers[2]}},
		{"the repository reconciler knows no Git service and no other reconciler", "pkg/reconciler/repository",
			[]string{github, gitlab, reconcilers[0], reconcilers[2]}},
		{"the sweep knows no Git service and no other reconciler", "pkg/reconciler/sweep",
			[]string{github, gitlab, reconcilers[0], reconcilers[1]}},
		{"the command line plans without a reconciler", "cmd/plumb", append([]string{controller}, reconcilers...)},
		{"an error means what it means without a controller", "pkg/fault",
			[]string{controller, "k8s.io/client-go/tools/cache"}},
		{"the fair queue knows no controller", "pkg/flowcontrol/fairqueue", []string{controller}},
		{"credentials know no queue", "pkg/credentials", []string{module + "pkg/flowcontrol/fairqueue"}},
		{"a Git service knows no controller", "pkg/provider/github", []string{controller}},
		{"matching knows no controller, no Git service and no file", "pkg/pipeline/match",
			[]string{controller, module + "pkg/provider", module + "pkg/pipeline/resolve"}},
		{"expressions know nothing of ours but globs and faults", "pkg/pipeline/cel",
			[]string{module + "pkg/provider", module + "pkg/apis/plumbline/v1alpha1", module + "pkg/pipeline/match"}},
		{"access knows no Git service", "pkg/authz/rules", []string{module + "pkg/provider"}},
		{"the verdict knows no Git service and no reconciler", "pkg/status",
			append([]string{module + "pkg/provider", module + "pkg/pipeline/resolve"}, reconcilers...)},
		{"the kinds depend on nothing of ours but themselves", "pkg/apis/plumbline/v1alpha1",
			[]string{module + "pkg/fault", module + "pkg/status"}},
	}
	packages, _ := product(t)
	for _, test := range tests {
		t.Run(test.sentence, func(t *testing.T) {
			t.Parallel()
			if len(packages[test.pkg].Deps) == 0 {
				t.Fatalf("go list does not list %s", test.pkg)
			}
			for _, forbidden := range test.never {
				if slices.Contains(packages[test.pkg].Deps, forbidden) {
					t.Errorf("%s depends on %s", test.pkg, forbidden)
				}
			}
		})
	}
}
