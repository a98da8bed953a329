// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// formerRole is what the receivers of earlier versions needed.
const formerRole = "plumbline-receiver-secrets"

func ownConditions() []condition {
	secret := func(how func(*corev1.Secret)) func(context.Context, *testing.T) {
		return func(ctx context.Context, t *testing.T) {
			change(ctx, t, shared.Kube.CoreV1().Secrets(product), appSecret, how)
		}
	}
	const object = "Secret plumbline/plumbline-github-app"
	return []condition{
		{
			name: "the App's Secret is missing",
			wreck: func(ctx context.Context, t *testing.T) {
				must(t, shared.Kube.CoreV1().Secrets(product).Delete(ctx, appSecret, metav1.DeleteOptions{}))
			},
			says: []string{object + " does not exist",
				"kubectl -n plumbline create secret generic plumbline-github-app --from-literal=github-application-id="},
		},
		{
			name:  "a key of the Secret is missing",
			wreck: secret(func(s *corev1.Secret) { delete(s.Data, "webhook.secret") }),
			says: []string{
				object + " has no key webhook.secret", "set webhook.secret to the webhook secret of the App's settings",
			},
		},
		{
			name:  "a key of the Secret is empty",
			wreck: secret(func(s *corev1.Secret) { s.Data["webhook.secret"] = []byte("\n") }),
			says:  []string{object + " has an empty key webhook.secret"},
		},
		{
			name: "no controller has copied the webhook secrets",
			wreck: func(ctx context.Context, t *testing.T) {
				must(t, shared.Kube.CoreV1().Secrets(product).Delete(ctx, webhooksecret.ShardName(3), metav1.DeleteOptions{}))
			},
			says: []string{
				"Secrets plumbline/plumbline-webhook-secrets-3 do not have all webhook secrets yet", "let the controllers run",
			}, receiver: true,
		},
		{
			name: "the receiver has the rights of an earlier version",
			wreck: func(ctx context.Context, t *testing.T) {
				rbac := shared.Kube.RbacV1()
				_, errRole := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: formerRole},
					Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}},
					metav1.CreateOptions{})
				_, errBinding := rbac.ClusterRoleBindings().Create(ctx,
					&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: formerRole},
						RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: formerRole},
						Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: product, Name: "plumbline-receiver"}}},
					metav1.CreateOptions{})
				must(t, errors.Join(errRole, errBinding))
			},
			undo: func(ctx context.Context, t *testing.T) {
				rbac := shared.Kube.RbacV1()
				must(t, rbac.ClusterRoleBindings().Delete(ctx, formerRole, metav1.DeleteOptions{}))
				must(t, rbac.ClusterRoles().Delete(ctx, formerRole, metav1.DeleteOptions{}))
			},
			says: []string{"lets plumbline-receiver read every Secret of the cluster",
				"kubectl delete clusterrolebinding,clusterrole " + formerRole}, receiver: true,
		},
		{
			name: "the private key is unreadable and the ID no number",
			wreck: secret(func(s *corev1.Secret) {
				s.Data["github-private-key"] = s.Data["github-private-key"][:100]
				s.Data["github-application-id"] = []byte("Iv1.acme")
			}),
			says: []string{"has a key github-private-key that is not the App's private key, an RSA key in PEM form",
				"has a key github-application-id that is not the App's ID, a number"},
		},
		{
			name:  "a definition is missing",
			wreck: func(ctx context.Context, t *testing.T) { deleteDefinition(ctx, t, "repositoryclaims.plumbline.dev") },
			says: []string{"CustomResourceDefinition repositoryclaims.plumbline.dev is missing",
				"kubectl apply -f config/300-crd-repositoryclaims.yaml"},
		},
		{
			name: "a definition is an older one",
			wreck: func(ctx context.Context, t *testing.T) {
				const version = "/spec/versions/0"
				patchDefinition(ctx, t, "gitevents.plumbline.dev", `[
					{"op":"remove","path":"`+version+`/schema/openAPIV3Schema/properties/spec/properties/installationID"},
					{"op":"remove","path":"`+version+`/schema/openAPIV3Schema/properties/status/properties/plan/properties/blobs"},
					{"op":"remove","path":"`+version+`/selectableFields"}]`)
			},
			says: []string{
				"CustomResourceDefinition gitevents.plumbline.dev is of another version than this binary", ".spec.installationID",
				".status.plan.blobs",
				"selectable field", "kubectl apply -f config/300-crd-gitevents.yaml",
			},
		},
		{
			name: "a definition has no status of its own",
			wreck: func(ctx context.Context, t *testing.T) {
				patchDefinition(ctx, t, "repositories.pipelinesascode.tekton.dev",
					`[{"op":"remove","path":"/spec/versions/0/subresources"}]`)
			},
			says: []string{"CustomResourceDefinition repositories.pipelinesascode.tekton.dev is of another version",
				"subresource status", "kubectl apply -f config/300-crd-repositories.yaml"},
		},
	}
}

func definitionClient(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Cluster.RESTConfig())
	must(t, err)
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

// deleteDefinition waits until the definition is gone: one that is being deleted cannot be applied
// again.
func deleteDefinition(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	client := definitionClient(t)
	must(t, client.Delete(ctx, name, metav1.DeleteOptions{}))
	eventually(ctx, t, name+" is gone", func() error {
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// takeDefinition deletes a definition and returns it for putDefinition.
func takeDefinition(ctx context.Context, t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	definition, err := definitionClient(t).Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	deleteDefinition(ctx, t, name)
	return definition
}

func putDefinition(ctx context.Context, t *testing.T, definition *unstructured.Unstructured) {
	t.Helper()
	definition.SetResourceVersion("")
	_, err := definitionClient(t).Create(ctx, definition, metav1.CreateOptions{})
	must(t, err)
}

func patchDefinition(ctx context.Context, t *testing.T, name, patch string) {
	t.Helper()
	_, err := definitionClient(t).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}
