// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// deployments are those of config/.
func deployments() []string { return []string{"plumbline-receiver", "plumbline-controller"} }

// podOf is a pod as a Deployment's ReplicaSet makes it.
func podOf(t *testing.T, deployment, name string) *corev1.Pod {
	t.Helper()
	d, err := Deployment(deployment)
	must(t, err)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: product, Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
}

// The API server's own PodSecurity admission takes the pods of config/, and refuses them when they may run as root (test/manifests has
// what it does not ask for). A Deployment would only be warned of.
func TestPodsAreAdmittedAsRestricted(t *testing.T) {
	ctx := within(t)
	namespace, err := shared.Kube.CoreV1().Namespaces().Get(ctx, product, metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Fatalf("namespace %v, %v: want Pod Security restricted enforced", namespace.Labels, err)
	}
	for _, deployment := range deployments() {
		pod, dry := podOf(t, deployment, deployment+"-probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := shared.Kube.CoreV1().Pods(product).Create(ctx, pod, dry); err != nil {
			t.Errorf("refused: %v", err)
		}
		pod.Spec.SecurityContext.RunAsNonRoot = nil
		_, err := shared.Kube.CoreV1().Pods(product).Create(ctx, pod, dry)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "violates PodSecurity") || !strings.Contains(err.Error(), "runAsNonRoot") {
			t.Errorf("the API server says %v of a pod that may run as root", err)
		}
	}
}

// Every object of config/ is on the API server, in the file's own words: what it does not know it would not keep.
func TestEveryManifestIsApplied(t *testing.T) {
	ctx := within(t)
	must(t, shared.Cluster.Apply(ctx, monitoringKinds()))
	objects, err := manifests()
	must(t, err)
	objects = append(objects, monitoring(t)...)
	must(t, apply(ctx, shared.Cluster, objects, all)) // a second time: that is an upgrade
	client, err := dynamic.NewForConfig(shared.Cluster.RESTConfig())
	must(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(shared.Kube.Discovery()))
	for _, want := range objects {
		kind := want.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		must(t, err)
		got, err := client.Resource(mapping.Resource).Namespace(want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s %s: %v", want.GetKind(), want.GetName(), err)
			continue
		}
		for _, part := range []string{"spec", "rules", "data", "subjects", "roleRef"} {
			if lost := lost(want.Object[part], got.Object[part], part); lost != "" {
				t.Errorf("%s %s: the API server does not keep %s", want.GetKind(), want.GetName(), lost)
			}
		}
	}
}

// lost is the path of a field that want has and got has not.
func lost(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		kept, _ := got.(map[string]any)
		for name, value := range want {
			if _, there := kept[name]; !there {
				return path + "." + name
			}
			if lost := lost(value, kept[name], path+"."+name); lost != "" {
				return lost
			}
		}
	case []any:
		kept, _ := got.([]any)
		if len(kept) < len(want) {
			return path + "[]"
		}
		for i := range want {
			if lost := lost(want[i], kept[i], path+"[]"); lost != "" {
				return lost
			}
		}
	}
	return ""
}

// monitoring is what config/monitoring has for the Prometheus Operator.
func monitoring(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := cluster.Root()
	must(t, err)
	folder := filepath.Join(root, "config", "monitoring")
	all, err := objectsOf(filepath.Join(folder, "servicemonitors.yaml"), filepath.Join(folder, "prometheusrules.yaml"))
	must(t, err)
	return all
}

// monitoringKinds stands in for the definitions of the Prometheus Operator, which is not a dependency: that the objects
// are named, placed and shaped as any API server wants them is shown, that the operator knows each field is not. The rules
// themselves are read by Prometheus' own parser (hack/tools/promrules), the monitors by test/manifests.
func monitoringKinds() []byte {
	return []byte(definitionOf("servicemonitors", "ServiceMonitor") + definitionOf("prometheusrules", "PrometheusRule"))
}

func definitionOf(plural, kind string) string {
	return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: ` + plural + `, kind: ` + kind + `}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`
}
