// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// allow grants this account all rights except some, for example "delete services".
func (e *env) allow(without ...string) {
	e.kube.PrependReactor("create", "selfsubjectaccessreviews",
		func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject(). //nolint:forcetypeassert // of this verb and kind
										DeepCopyObject().(*authorizationv1.SelfSubjectAccessReview)
			right := review.Spec.ResourceAttributes
			review.Status.Allowed = !slices.Contains(without, right.Verb+" "+right.Resource)
			return true, review, nil
		})
}

func TestRunNamesAllMissingRightsBeforeItChangesAnything(t *testing.T) {
	for name, test := range map[string]struct {
		lacks, named []string
		closes, helm string
		yes, refused bool
	}{
		"to delete": {
			[]string{"delete clusterroles", "delete rolebindings"},
			[]string{
				"delete clusterroles.rbac.authorization.k8s.io in all namespaces",
				"delete rolebindings.rbac.authorization.k8s.io in namespace team-a",
			}, Cancel, "", true, true,
		},
		"without --yes":            {[]string{"delete services"}, []string{"delete services in namespace plumbline"}, "", "", false, true},
		"to stop the receivers":    {[]string{"patch deployments"}, []string{"patch deployments.apps in namespace plumbline"}, Wait, "", true, true},
		"to cancel":                {[]string{"patch gitevents"}, []string{"patch gitevents.plumbline.dev in namespace plumbline"}, Cancel, "", true, true},
		"to list pods":             {[]string{"list pods"}, []string{"list pods in namespace plumbline"}, Leave, "", true, true},
		"checks stay open":         {[]string{"patch deployments", "patch gitevents"}, nil, Leave, "", true, false},
		"Helm deletes the objects": {[]string{"delete clusterroles"}, nil, Leave, "ci", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{controller(system)}
			if test.helm != "" {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: system, Name: "plumbline", Annotations: map[string]string{"meta.helm.sh/release-name": test.helm},
				}})
			}
			e := newEnv(t, objects, gitEvent("gh-1", running))
			e.allow(test.lacks...)
			e.Yes, e.CloseChecks = test.yes, test.closes
			err := e.Uninstaller.Run(t.Context())
			if (err != nil) != test.refused {
				t.Fatalf("got %v", err)
			}
			for _, right := range test.named {
				if !strings.Contains(err.Error(), "\n  "+right+"\n") {
					t.Errorf("%v does not name the right to %s", err, right)
				}
			}
			if test.refused && len(e.writes()) > 0 {
				t.Errorf("changed %v", e.writes())
			}
		})
	}
}

// writes returns the calls that change something.
func (e *env) writes() []clienttesting.Action {
	all := slices.Concat(e.kube.Actions(), e.own.Actions(), e.dynamic.Actions())
	return slices.DeleteFunc(all, func(a clienttesting.Action) bool {
		return slices.Contains([]string{"get", "list"}, a.GetVerb()) || a.GetResource().Group == authorizationv1.GroupName
	})
}
