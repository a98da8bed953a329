// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

const (
	amount         = 20
	definitionName = "repositories.pipelinesascode.tekton.dev"
	guard          = "plumbline-keep-repositories"
)

// Without the command all Repositories are deleted: the operator deletes the owner of their
// definition.
func TestTurningOffDeletesRepositories(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	installed(ctx, t, "openshift")
	turn(ctx, t, "openshift", false)
	eventually(ctx, t, "the Repositories are deleted", func() error {
		if all := existing(ctx, t); len(all) > 0 {
			return fmt.Errorf("%d are there", len(all))
		}
		return nil
	})
}

func TestRepositoriesSurvive(t *testing.T) {
	for name, test := range map[string]struct {
		platform string
		restores bool
	}{
		"on OpenShift":                           {"openshift", false},
		"on plain Kubernetes":                    {"kubernetes", false},
		"the operator restores owner references": {"openshift", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
			before := installed(ctx, t, test.platform)
			shared.operator.restores.Store(test.restores)
			defer shared.operator.restores.Store(false)
			shown, err := migrate(ctx, shared.cluster.KubeconfigPath(), backup)
			if err != nil || !strings.Contains(shown, "Nothing was changed") || !strings.Contains(shown, "owns") {
				t.Fatalf("%v: %s", err, shown)
			}
			shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--apply")
			if err != nil {
				t.Fatalf("%v: %s", err, shown)
			}
			requireOff(ctx, t, before)
			requireBackup(t, backup, before)
			for range 2 { // the second call finds nothing to do
				shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--back", "--apply")
				if err != nil {
					t.Fatalf("back: %v: %s", err, shown)
				}
			}
			if after := installed(ctx, t, test.platform); !maps.Equal(before, after) {
				t.Errorf("on the way back %d Repositories of %d are the same", len(after), len(before))
			}
		})
	}
}

// The process is killed when a call has taken effect, and the command is called again. A Repository
// that is gone stops it.
func TestKilledCommandContinues(t *testing.T) {
	proxy, err := cluster.NewProxy(shared.cluster)
	must(t, err)
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	points := []struct{ verb, resource string }{
		{"patch", "customresourcedefinitions"}, {"patch", "tektonconfigs"}, {"delete", "validatingadmissionpolicybindings"},
		{"create", "validatingadmissionpolicybindings"}, {"delete", "customresourcedefinitions"},
		{"delete", "validatingadmissionpolicies"},
	}
	if testing.Short() {
		points = points[:3]
	}
	for _, at := range points {
		t.Run(at.verb+" "+at.resource, func(t *testing.T) {
			ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
			must(t, proxy.Kubeconfig(kubeconfig, shared.cluster.RESTConfig().BearerToken))
			before := installed(ctx, t, "openshift")
			killed, kill := context.WithCancel(ctx)
			defer kill()
			defer proxy.Reset()
			proxy.Add(cluster.Rule{
				Match: func(c cluster.Call) bool { return c.Is(at.verb, at.resource) }, Count: 1, Do: cluster.ApplyThenEnd(kill),
			})
			shown, err := migrate(killed, kubeconfig, backup, "--apply")
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || killed.Err() == nil {
				t.Fatalf("it was not killed: %v: %s", err, shown)
			}
			shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--apply")
			if err != nil {
				t.Fatalf("%v: %s", err, shown)
			}
			requireOff(ctx, t, before)
		})
	}
}

func TestMissingRepositoryStopsUntilItIsRestored(t *testing.T) {
	ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
	before := installed(ctx, t, "openshift")
	shown, err := migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--apply")
	if err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	requireOff(ctx, t, before)
	team := shared.client.Resource(repositories()).Namespace(namespace)
	must(t, team.Delete(ctx, "app-3", metav1.DeleteOptions{}))
	shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--back", "--apply")
	if err == nil || !strings.Contains(shown, "1 Repositories are gone, among them "+namespace+"/app-3") ||
		!strings.Contains(shown, "kubectl create -f "+backup) {
		t.Errorf("%v: %s", err, shown)
	}
	config, err := shared.client.Resource(operated("tektonconfigs")).Get(ctx, "config", metav1.GetOptions{})
	must(t, err)
	if on, _, _ := unstructured.NestedBool(
		config.Object,
		"spec",
		"platforms",
		"openshift",
		"pipelinesAsCode",
		"enable",
	); on {
		t.Error("Pipelines-as-Code was turned on although a Repository is gone")
	}
	for _, r := range saved(t, backup) { // kubectl create -f
		if _, err := team.Create(ctx, &r, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	}
	shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--back", "--apply")
	if after := existing(ctx, t); err != nil || len(after) != len(before) {
		t.Errorf("%d Repositories after the backup was restored: %v: %s", len(after), err, shown)
	}
}

// The operator writes an owner reference to the definition, and is gone before the command sees its
// objects. Without the policy the definition would be deleted. The policy protects no Repository:
// its owner may delete it.
func TestOwnerReferenceOfTheLastMomentIsRemoved(t *testing.T) {
	ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
	proxy, err := cluster.NewProxy(shared.cluster)
	must(t, err)
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, proxy.Kubeconfig(kubeconfig, shared.cluster.RESTConfig().BearerToken))
	before := installed(ctx, t, "openshift")
	definition, err := shared.client.Resource(definitions()).Get(ctx, definitionName, metav1.GetOptions{})
	must(t, err)
	owners := map[string]any{"ownerReferences": definition.GetOwnerReferences()}
	owner, err := json.Marshal(map[string]any{"metadata": owners})
	must(t, err)
	shared.operator.waits.Store(true)
	defer shared.operator.waits.Store(false)
	sets := shared.client.Resource(operated("tektoninstallersets"))
	last, polls := errors.New("no TektonInstallerSet was deleted while the command waited"), 0
	proxy.OnCall(func(c cluster.Call) {
		if !c.Is("list", "tektoninstallersets") {
			return
		}
		list, err := sets.List(ctx, metav1.ListOptions{})
		deleted := func(s unstructured.Unstructured) bool { return s.GetDeletionTimestamp() != nil }
		if err != nil || !slices.ContainsFunc(list.Items, deleted) {
			return
		}
		if polls++; polls < 2 { // in the first one it may have seen the owner
			return
		}
		try := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		mayDelete := shared.client.Resource(repositories()).Namespace(namespace).Delete(ctx, "app-1", try)
		_, err = shared.client.Resource(definitions()).
			Patch(ctx, definitionName, types.MergePatchType, owner, metav1.PatchOptions{})
		shared.operator.waits.Store(false)
		last = errors.Join(mayDelete, err, cluster.Poll(ctx, look, func() error {
			list, err := sets.List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("%d are there", len(list.Items))
			}
			return err
		}))
	})
	shown, err := migrate(ctx, kubeconfig, backup, "--apply")
	if err != nil || last != nil {
		t.Fatalf("%v, %v: %s", err, last, shown)
	}
	requireOff(ctx, t, before)
}

// Where no TektonConfig turns it off, the user deletes the operator's object, as the command says.
func TestObjectWithoutTektonConfigIsDeletedByTheUser(t *testing.T) {
	ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
	before := installed(ctx, t, "openshift")
	orphan := metav1.DeletePropagationOrphan
	must(t, shared.client.Resource(operated("tektonconfigs")).
		Delete(ctx, "config", metav1.DeleteOptions{PropagationPolicy: &orphan}))
	shown, err := migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--apply")
	if err == nil || !strings.Contains(shown, "kubectl delete openshiftpipelinesascode "+pacName) {
		t.Fatalf("%v: %s", err, shown)
	}
	must(t, shared.client.Resource(operated("openshiftpipelinesascodes")).Delete(ctx, pacName, metav1.DeleteOptions{}))
	if shown, err = migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--apply"); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	requireOff(ctx, t, before)
}

// An alias for PaC's Service would stay an alias, and PaC's address would lead back to Plumbline.
func TestAliasIsRemovedBeforeTheWayBack(t *testing.T) {
	ctx, backup := within(t, 3*time.Minute), filepath.Join(t.TempDir(), "repositories.yaml")
	const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: plumbline, namespace: plumbline}
data: {pipelines-as-code-url: "http://pipelines-as-code-controller.openshift-pipelines.svc.cluster.local:8080"}
`
	names, err := os.ReadFile("../../config/optional/pipelines-as-code-names.yaml")
	must(t, err)
	alias := strings.ReplaceAll(string(names), "namespace: pipelines-as-code", "namespace: "+namespace)
	turn(ctx, t, "openshift", false)
	must(t, shared.cluster.MakeNamespace(ctx, "plumbline"))
	must(t, shared.cluster.Apply(ctx, []byte(settings+"---\n"+alias)))
	defer func() {
		core := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		must(t, shared.client.Resource(core).Namespace("plumbline").Delete(ctx, "plumbline", metav1.DeleteOptions{}))
		core.Resource = "services"
		must(t, shared.client.Resource(core).Namespace(namespace).
			Delete(ctx, "pipelines-as-code-controller", metav1.DeleteOptions{}))
	}()
	shown, err := migrate(ctx, shared.cluster.KubeconfigPath(), backup, "--back", "--apply")
	want := "kubectl -n " + namespace + " delete service/pipelines-as-code-controller"
	if err == nil || !strings.Contains(shown, want) {
		t.Errorf("%v: %s", err, shown)
	}
}
