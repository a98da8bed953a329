// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	pacfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
)

func serving(namespaces string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "plumbline"},
		Data: map[string]string{"serve-namespaces": namespaces}}
}

func TestServedNamespacesAreChecked(t *testing.T) {
	const private = "https://10.0.0.1"
	for value, want := range map[string]string{
		"team-a":           "",
		"plumbline,!team":  "",
		"team-a, team-c":   "serve-namespaces in ConfigMap plumbline/plumbline lists what no namespace with a Repository matches: team-c",
		"team-a, x-*, y":   "matches: x-*, y",
		"team_a":           `cannot be read, so that a process that starts now serves no namespace of a team: "team_a" is neither`,
		"team-b":           "The Git services of Repositories are not all called: Repository team-b/app: 10.0.0.1",
		"team-*, !team-b":  "",
		"team-a, !no-such": "",
	} {
		c, _ := checker(t, serving(value))
		c.repositories = pacfake.NewSimpleClientset(
			served("team-a", "app", "https://gitlab.com/a/b", onGitLab("")),
			served("team-b", "app", private+"/a/b", onGitLab(private)),
		).PipelinesascodeV1alpha1()
		got := c.repositoriesOfTeams(t.Context())
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)) {
			t.Errorf("%q: found %v, want %q", value, got, want)
		}
	}
}

// If the served namespaces are listed, rights in each are enough. A missing right names its
// namespace.
func TestRightsInListedNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		serve    string
		bound    []string // the namespaces in which the account has every right, besides its own
		watching bool     // it may list and watch everywhere
		alone    bool     // it has no RoleBinding in its own namespace
		says     []string
		not      string
	}{
		"bound in each": {serve: "team-a, team-b", bound: []string{"team-a", "team-b"}, watching: true,
			not: "ClusterRole plumbline-controller does not let plumbline-controller create"},
		"bound in one": {serve: "team-a, team-b", bound: []string{"team-a"}, watching: true, says: []string{
			"create, patch, delete pipelineruns.tekton.dev in namespace team-b.", "get secrets in namespace team-b.",
			"config/optional/namespaces.yaml",
		}, not: "in namespace team-a"},
		"nothing watched": {
			serve: "team-a", bound: []string{"team-a"}, says: []string{"list, watch pipelineruns.tekton.dev in any namespace"},
		},
		"not in its own": {serve: "team-a, team-b, !team-b", bound: []string{"team-a"}, watching: true, alone: true,
			says: []string{"update repositories.pipelinesascode.tekton.dev/status in namespace plumbline."}, not: "team-b"},
		"a glob": {serve: "team-*", bound: []string{"team-a"}, watching: true,
			says: []string{"create, patch, delete pipelineruns.tekton.dev in any namespace"}, not: "get secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := checker(t, serving(test.serve))
			client.PrependReactor("create", "selfsubjectaccessreviews",
				func(a clienttesting.Action) (bool, runtime.Object, error) {
					review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
					of := review.Spec.ResourceAttributes
					watching := test.watching && (of.Verb == "watch" || of.Verb == "list" && of.Resource != "taskruns" ||
						of.Group == "admissionregistration.k8s.io")
					answer := &authorizationv1.SelfSubjectAccessReview{}
					lacked := test.alone && of.Subresource == "status" && of.Resource == "repositories"
					own := of.Namespace == c.Namespace && !lacked
					answer.Status.Allowed = watching || own || slices.Contains(test.bound, of.Namespace)
					return true, answer, nil
				})
			var all []string
			for _, f := range c.rights(t.Context()) {
				all = append(all, f.String())
			}
			said := strings.Join(all, "\n")
			for _, says := range test.says {
				if !strings.Contains(said, says) {
					t.Errorf("%s\nwant %q", said, says)
				}
			}
			if test.not != "" && strings.Contains(said, test.not) || test.says == nil && said != "" {
				t.Errorf("%s\nwant no %q", said, test.not)
			}
		})
	}
}
