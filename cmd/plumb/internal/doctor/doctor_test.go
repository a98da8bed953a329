// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
)

func finds(name string, findings ...preflight.Finding) preflight.Check {
	return preflight.Check{Name: name, Run: func(context.Context) []preflight.Finding { return findings }}
}

func forbidden(right string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "app",
		errors.New(`User "eve" cannot `+right+` resource "secrets" in API group "" in the namespace "ci"`))
}

// An API server without etcd answers /version, and no other call before its time limit.
func TestExamineStopsAtAServerThatHangs(t *testing.T) {
	hangs := preflight.Finding{
		Object:  "Role",
		Problem: "could not be checked",
		Err:     &url.Error{Op: "Get", Err: context.DeadlineExceeded},
	}
	last := preflight.Check{Name: "Services", Run: func(context.Context) []preflight.Finding {
		t.Error("a further check was made")
		return nil
	}}
	all := Examine(t.Context(), finds("Kubernetes"), []preflight.Check{finds("Rights", hangs), last})
	if len(all) != 3 || all[1].Result != Failed || all[2].Result != Skipped ||
		!strings.Contains(all[2].Problems[0].Remedy, "Rights") {
		t.Errorf("got %+v", all)
	}
}

func TestExamineSaysOneLineForEachCheck(t *testing.T) {
	missing := preflight.Finding{Object: "Secret ci/app", Problem: "does not exist", Remedy: "create it"}
	hidden := preflight.Finding{
		Object:  "Secret ci/app",
		Problem: "could not be checked",
		Remedy:  "apply config/",
		Err:     forbidden("get"),
	}
	alsoHidden := hidden
	alsoHidden.Object = "Secret ci/other"
	for name, test := range map[string]struct {
		first  preflight.Check
		others []preflight.Check
		worst  string
		want   []string
	}{
		"everything is well": {
			finds("Kubernetes"), []preflight.Check{finds("Services")},
			Passed, []string{"Kubernetes  passed", "Services    passed"},
		},
		"one check fails": {
			finds("Kubernetes"), []preflight.Check{finds("Secret", missing), finds("Services")},
			Failed, []string{"Kubernetes  passed", "Secret      failed  Secret ci/app does not exist. To fix it: create it", "Services    passed"},
		},
		"one right hides two objects": {
			finds("Kubernetes"), []preflight.Check{finds("Secret", hidden, alsoHidden)},
			NotAllowed, []string{
				"Kubernetes  passed",
				"Secret      not allowed  Secret ci/app was not checked: this account lacks the right to get secrets in namespace ci." +
					" To fix it: ask an administrator of the cluster for this right, or to run plumb doctor",
			},
		},
		"a failure counts more than a missing right": {
			finds("Kubernetes", missing), []preflight.Check{finds("Secret", hidden)}, Failed, nil,
		},
		"the version may not be read, and the API server responds": {
			finds("Kubernetes", hidden), []preflight.Check{finds("Services")}, NotAllowed, nil,
		},
		"the API server does not respond": {
			finds("Kubernetes", preflight.Finding{Object: "Kubernetes", Problem: "could not be checked: refused", Remedy: "try again", Err: errors.New("refused")}),
			[]preflight.Check{finds("Secret", missing)},
			Failed, []string{
				"Kubernetes  failed   Kubernetes could not be checked: refused. To fix it: try again",
				"Secret      skipped  This check was not made. To fix it: fix the check Kubernetes first",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := Examine(t.Context(), test.first, test.others)
			var out strings.Builder
			if err := WriteTable(&out, all); err != nil {
				t.Fatal(err)
			}
			if worst := Worst(all); worst != test.worst {
				t.Errorf("the worst result is %s, want %s:\n%s", worst, test.worst, out.String())
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
			for i := range lines { // the width of a column depends on the longest result
				lines[i] = strings.ReplaceAll(strings.TrimRight(lines[i], " "), "failed       ", "failed  ")
			}
			if test.want != nil {
				if diff := cmp.Diff(test.want, lines); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestUnusableKubeconfigSkipsTheOtherChecks(t *testing.T) {
	all := Unreachable(errors.New("no such file"), finds("Kubernetes"), []preflight.Check{finds("Secret")})
	var out strings.Builder
	if err := WriteJSON(&out, "plumbline", all); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"result": "failed"`, "The kubeconfig", "no such file", `"check": "Secret"`, `"result": "skipped"`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the JSON does not have %s:\n%s", part, out.String())
		}
	}
}
