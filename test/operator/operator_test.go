// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// The process is killed at a call, and the command is called again. A Repository that is gone stops
// it.
func TestKilledCommandContinues(t *testing.T) {
	proxy, err := cluster.NewProxy(shared.cluster)
	must(t, err)
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	points := []struct{ verb, resource string }{
		{"patch", "customresourcedefinitions"}, {"patch", "tektonconfigs"}, {"delete", "validatingadmissionpolicybindings"},
		{"create", "validatingadmissionpolicybindings"}, {"delete", "customresourcedefinitions"},
		{"delete", "validatingwebhookconfigurations"}, {"delete", "validatingadmissionpolicies"},
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
			proxy.OnCall(func(c cluster.Call) {
				if c.Is(at.verb, at.resource) {
					kill()
				}
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

func TestMissingRepositoryStops(t *testing.T) {
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
}
