// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// without removes verbs on a resource from a role of the installation.
func without(role, resource string, verbs ...string) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		t.Helper()
		cut := func(rules []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
			for _, rule := range rules {
				if slices.Contains(rule.Resources, resource) {
					rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return slices.Contains(verbs, verb) })
				}
				if len(rule.Verbs) != 0 {
					left = append(left, rule)
				}
			}
			return left
		}
		if name, is := strings.CutPrefix(role, "ClusterRole "); is {
			change(ctx, t, shared.Kube.RbacV1().ClusterRoles(), name, func(r *rbacv1.ClusterRole) { r.Rules = cut(r.Rules) })
			return
		}
		name := strings.TrimPrefix(role, "Role ")
		change(ctx, t, shared.Kube.RbacV1().Roles(product), name, func(r *rbacv1.Role) { r.Rules = cut(r.Rules) })
	}
}

func rightConditions() []condition {
	return []condition{
		{
			name:  "a right on PipelineRuns is missing",
			wreck: without("ClusterRole plumbline-controller", "pipelineruns", "patch", "watch"),
			says: []string{
				"ClusterRole plumbline-controller does not let plumbline-controller watch, patch pipelineruns.tekton.dev in any namespace",
				"kubectl apply -f config/210-clusterroles.yaml -f config/220-clusterrolebindings.yaml",
			},
		},
		{
			name:     "a right of the receiver is missing",
			wreck:    without("Role plumbline-receiver", "gitevents", "create"),
			receiver: true,
			says: []string{
				"Role plumbline/plumbline-receiver does not let plumbline-receiver create gitevents.plumbline.dev in namespace plumbline",
			},
		},
		{
			name: "the rights of the preflight itself are missing",
			wreck: func(ctx context.Context, t *testing.T) { // the optional role for logs has the right as well
				without("ClusterRole plumbline-controller-logs", "pods", "list")(ctx, t)
				without("Role plumbline-controller", "pods", "list")(ctx, t)
			},
			says: []string{"Service plumbline/plumbline-receiver could not be checked: pods is forbidden",
				"let this account get the Services and list the pods: kubectl apply -f config/230-roles.yaml"},
		},
		{
			name:  "nobody may look for Pipelines-as-Code",
			wreck: without("ClusterRole plumbline-controller", "deployments", "list"),
			says: []string{
				"ClusterRole plumbline-controller does not let plumbline-controller list deployments.apps in any namespace",
				"Deployment pipelines-as-code-watcher could not be checked: deployments.apps",
				"let this account list it: kubectl apply -f config/210-clusterroles.yaml",
			},
		},
	}
}

// setTektonVersion sets the version that Tekton publishes.
func setTektonVersion(version string) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		t.Helper()
		_, err := shared.Kube.CoreV1().ConfigMaps("tekton-pipelines").Patch(ctx, "pipelines-info", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"data":{"version":%q}}`, version)), metav1.PatchOptions{})
		must(t, err)
	}
}

func foreignConditions() []condition {
	var pipelineRuns *unstructured.Unstructured
	return []condition{
		{
			name: "Tekton is missing",
			wreck: func(ctx context.Context, t *testing.T) {
				pipelineRuns = takeDefinition(ctx, t, "pipelineruns.tekton.dev")
			},
			undo: func(ctx context.Context, t *testing.T) { putDefinition(ctx, t, pipelineRuns) },
			says: []string{"Tekton Pipelines is missing: version v1 of PipelineRun.tekton.dev is not served",
				"install Tekton Pipelines 1.0.0 or later"},
		},
		{
			name: "Pipelines-as-Code runs", wreck: runPaC("pipelines-as-code", "pipelines-as-code-watcher"),
			undo: func(ctx context.Context, t *testing.T) { removePaC(ctx, t, "pipelines-as-code") },
			says: []string{
				"Deployment pipelines-as-code/pipelines-as-code-watcher runs in this cluster and would adopt Plumbline's PipelineRuns",
				"kubectl -n pipelines-as-code scale deployment pipelines-as-code-watcher --replicas=0, or run both with plumb migrate start",
				"ValidatingWebhookConfiguration validation.pipelinesascode.tekton.dev is left over from Pipelines-as-Code",
				"kubectl delete validatingwebhookconfiguration validation.pipelinesascode.tekton.dev",
			},
		},
		{
			name: "a Service selects another Deployment's pods",
			wreck: func(ctx context.Context, t *testing.T) {
				pod := podOf(t, "plumbline-controller", "")
				pod.Labels = map[string]string{"app.kubernetes.io/name": "plumbline-receiver"}
				shared.runPod(ctx, t, "intruder", pod)
			},
			undo: func(ctx context.Context, t *testing.T) { shared.removePod(ctx, t, "intruder") },
			says: []string{
				"Service plumbline/plumbline-receiver selects foreign pods by app.kubernetes.io/name=plumbline-receiver",
				"those of Deployment intruder",
				"take these labels off them or move them to a namespace of their own",
			},
		},
		{
			name: "a Service was changed and selects nothing",
			wreck: func(ctx context.Context, t *testing.T) {
				change(ctx, t, shared.Kube.CoreV1().Services(product), "plumbline-receiver", func(service *corev1.Service) {
					service.Spec.Selector["pod-template-hash"] = "before"
				})
			},
			says: []string{
				"Service plumbline/plumbline-receiver selects no pod of Deployment plumbline-receiver by app.kubernetes.io/name=plumbline-receiver,pod-template-hash=before",
				"kubectl apply -f config/500-services.yaml",
			},
		},
		{
			name: "a Service is missing",
			wreck: func(ctx context.Context, t *testing.T) {
				must(t, shared.Kube.CoreV1().Services(product).Delete(ctx, "plumbline-controller-metrics", metav1.DeleteOptions{}))
			},
			says: []string{
				"Service plumbline/plumbline-controller-metrics does not exist", "kubectl apply -f config/500-services.yaml",
			},
		},
		{
			name:  "Tekton is too old",
			wreck: setTektonVersion("v0.56.1"),
			undo:  setTektonVersion("devel"),
			says: []string{
				"Tekton Pipelines is v0.56.1, older than the 1.0.0 that Plumbline needs", "install Tekton Pipelines 1.0.0 or later",
			},
		},
	}
}
