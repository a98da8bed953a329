// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// Only Helm may repair its release: `kubectl apply -f config/` would take its objects over.
func TestRemediesNameHelmRelease(t *testing.T) {
	const upgrade = "helm upgrade ci <chart of this version> -n plumbline -f values.yaml"
	settings := func(annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "plumbline", Annotations: annotations},
		}
	}
	helm, kubectl := settings(map[string]string{"meta.helm.sh/release-name": "ci"}), settings(nil)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	absent := func(c *Checker) {
		c.fetch = func(context.Context, string) ([]byte, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
		}
	}
	definitions := func(c *Checker, ctx context.Context) []Finding { absent(c); return c.definitions(ctx) }
	for name, test := range map[string]struct {
		settings *corev1.ConfigMap
		denied   string
		check    func(*Checker, context.Context) []Finding
		says     string
	}{
		"Helm, a definition":       {helm, "", definitions, upgrade + "; if the values have crds.enabled: false: kubectl apply -f config/300-crd-"},
		"kubectl, a definition":    {kubectl, "", definitions, "To fix it: kubectl apply -f config/300-crd-"},
		"Helm, a right":            {helm, "", (*Checker).rights, "To fix it: " + upgrade},
		"kubectl, a right":         {kubectl, "", (*Checker).rights, "To fix it: kubectl apply -f config/210-"},
		"Helm, a Service":          {helm, "", (*Checker).services, "To fix it: " + upgrade},
		"Helm, a read":             {helm, "services", (*Checker).services, "list the pods: " + upgrade},
		"Helm, no Deployment":      {helm, "", (*Checker).deployments, "install Plumbline (" + upgrade + ")"},
		"nothing is installed":     {nil, "", (*Checker).deployments, "install Plumbline (kubectl apply -f config/)"},
		"who installed is unknown": {helm, "configmaps", (*Checker).services, "To fix it: kubectl apply -f config/500-services.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if test.settings != nil {
				objects = append(objects, test.settings)
			}
			c, client := checker(t, objects...)
			client.PrependReactor("create", "selfsubjectaccessreviews",
				func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, &authorizationv1.SelfSubjectAccessReview{}, nil // lacks every right
				})
			if test.denied != "" {
				client.PrependReactor("*", test.denied,
					func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, denied })
			}
			findings := test.check(c, t.Context())
			if len(findings) == 0 || !strings.Contains(findings[0].String(), test.says) {
				t.Errorf("%v; want %q", findings, test.says)
			}
		})
	}
}
