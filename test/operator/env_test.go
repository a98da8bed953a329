// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

func repositories() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "pipelinesascode.tekton.dev", Version: "v1alpha1", Resource: "repositories"}
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// within bounds one test. The garbage collector learns of new kinds twice a minute.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func eventually(ctx context.Context, t *testing.T, what string, f func() error) {
	t.Helper()
	if err := cluster.Poll(ctx, look, f); err != nil {
		t.Fatalf("not in time: %s: %v", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// turn writes the TektonConfig, as an administrator or GitOps does.
func turn(ctx context.Context, t *testing.T, platform string, on bool) {
	t.Helper()
	all := shared.client.Resource(operated("tektonconfigs"))
	config := operatorObject("TektonConfig", "config", nil)
	config.Object["spec"] = map[string]any{
		"targetNamespace": namespace,
		"platforms":       map[string]any{platform: map[string]any{"pipelinesAsCode": map[string]any{"enable": on}}},
	}
	there, err := all.Get(ctx, "config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(ctx, config, metav1.CreateOptions{})
		must(t, err)
		return
	}
	must(t, err)
	config.SetResourceVersion(there.GetResourceVersion())
	_, err = all.Update(ctx, config, metav1.UpdateOptions{})
	must(t, err)
}

// installed turns PaC on and returns Repositories, once the operator owns their definition.
func installed(ctx context.Context, t *testing.T, platform string) map[types.UID]string {
	t.Helper()
	turn(ctx, t, platform, true)
	eventually(ctx, t, "Pipelines-as-Code is installed and owns the definition", func() error {
		pac, err := shared.client.Resource(operated("openshiftpipelinesascodes")).Get(ctx, pacName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		definition, err := shared.client.Resource(definitions()).Get(ctx, definitionName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owners := uids(
			definition,
		); len(owners) != 1 || owners[0] != string(pac.GetUID()) ||
			definition.GetDeletionTimestamp() != nil {
			return fmt.Errorf("owned by %v", owners)
		}
		_, err = shared.client.Resource(resourceOf(shared.operator.deployments[1])).Namespace(namespace).
			Get(ctx, "pipelines-as-code-watcher", metav1.GetOptions{})
		return err
	})
	team := shared.client.Resource(repositories()).Namespace(namespace)
	for n := range amount {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "kind": "Repository",
			"metadata": map[string]any{"name": fmt.Sprintf("app-%d", n)},
			"spec":     map[string]any{"url": fmt.Sprintf("https://github.com/acme/app-%d", n)},
		}}
		eventually(ctx, t, "a Repository is created", func() error {
			_, err := team.Create(ctx, object, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
	all := existing(ctx, t)
	if len(all) != amount {
		t.Fatalf("%d Repositories", len(all))
	}
	return all
}

func existing(ctx context.Context, t *testing.T) map[types.UID]string {
	t.Helper()
	list, err := shared.client.Resource(repositories()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	all := map[types.UID]string{}
	for _, r := range list.Items {
		all[r.GetUID()] = r.GetName()
	}
	return all
}

// requireOff fails the test unless PaC is off, and nothing can delete the Repositories any more.
func requireOff(ctx context.Context, t *testing.T, before map[types.UID]string) {
	t.Helper()
	if after := existing(ctx, t); !maps.Equal(before, after) {
		t.Fatalf("%d Repositories of %d are there", len(after), len(before))
	}
	definition, err := shared.client.Resource(definitions()).Get(ctx, definitionName, metav1.GetOptions{})
	must(t, err)
	if owners := definition.GetOwnerReferences(); len(owners) > 0 || definition.GetDeletionTimestamp() != nil {
		t.Errorf("the definition is owned by %v, and deleted at %v", owners, definition.GetDeletionTimestamp())
	}
	for _, resource := range []string{"openshiftpipelinesascodes", "tektoninstallersets"} {
		list, err := shared.client.Resource(operated(resource)).List(ctx, metav1.ListOptions{})
		must(t, err)
		if len(list.Items) > 0 {
			t.Errorf("%d %s are there", len(list.Items), resource)
		}
	}
	admission := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1"}
	for resource, name := range map[string]string{
		"validatingadmissionpolicies": guard, "validatingadmissionpolicybindings": guard,
		"validatingwebhookconfigurations": "validation.pipelinesascode.tekton.dev",
	} {
		admission.Resource = resource
		if _, err := shared.client.Resource(admission).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s: %v", resource, name, err)
		}
	}
}

// migrate runs `plumb migrate operator` and returns what it prints.
func migrate(ctx context.Context, kubeconfig, backup string, args ...string) (string, error) {
	args = append([]string{"migrate", "operator", "--kubeconfig=" + kubeconfig, "--backup=" + backup}, args...)
	out, err := exec.CommandContext(ctx, shared.plumb, args...).CombinedOutput()
	return string(out), err
}

// saved returns the Repositories of a backup.
func saved(t *testing.T, file string) []unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	var list struct{ Items []map[string]any }
	must(t, yaml.Unmarshal(data, &list))
	all := make([]unstructured.Unstructured, len(list.Items))
	for i := range all {
		all[i].Object = list.Items[i]
	}
	return all
}

func requireBackup(t *testing.T, file string, want map[types.UID]string) {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has the mode %v", info.Mode())
	}
	got := map[types.UID]string{}
	for _, r := range saved(t, file) {
		got[r.GetUID()] = r.GetName()
		if r.GetResourceVersion() != "" {
			t.Error("kubectl create refuses an object with a resourceVersion")
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the backup has %d Repositories, want %d", len(got), len(want))
	}
}
