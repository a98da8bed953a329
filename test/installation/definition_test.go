// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// limitedRepo is a Repository, with events whose runs go on until they are released.
type limitedRepo struct {
	name, namespace, url string
	receiver             *Process
}

func newRepo(ctx context.Context, t *testing.T, name string, limit *int, receiver *Process) limitedRepo {
	t.Helper()
	r := limitedRepo{name: "acme/" + name, namespace: shared.Cluster.Namespace(t, name), receiver: receiver}
	r.url = shared.Forge.CreateRepo("acme", name, forge.RepoOptions{}).HTMLURL
	shared.Forge.Install(shared.App.ID, "acme", r.name)
	_, err := shared.Serve(ctx, r.namespace, "app", pacv1alpha1.RepositorySpec{URL: r.url, ConcurrencyLimit: limit})
	must(t, err)
	must(t, shared.Claimed(ctx, r.url))
	return r
}

// push returns the commit of a push that was accepted.
func (r limitedRepo) push(ctx context.Context, t *testing.T, message string) string {
	t.Helper()
	sha := shared.Forge.Commit(r.name, "main",
		forge.Change{Files: map[string]string{".tekton/build.yaml": heldPipeline}, Message: message})
	push := shared.Forge.PushDelivery(forge.PushEvent{Repo: r.name, Ref: "refs/heads/main"})
	eventually(ctx, t, "the push is accepted", func() error {
		status, body, err := shared.Forge.Deliver(ctx, r.receiver.URL, push)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("answered %d %s", status, body)
		}
		return err
	})
	return sha
}

func (r limitedRepo) check(sha, status, conclusion string) func() error {
	return func() error {
		c, _ := shared.Forge.Current(r.name, sha, "Pipelines as Code CI / build")
		if c.Status != status || c.Conclusion != conclusion {
			return fmt.Errorf("the check is %q %q: %s", c.Status, c.Conclusion, c.Title)
		}
		return nil
	}
}

// runs returns the names of the PipelineRuns.
func (r limitedRepo) runs(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	list, err := shared.Tekton.TektonV1().PipelineRuns(r.namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// release lets all runs end.
func (r limitedRepo) release(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, name := range r.runs(ctx, t) {
		must(t, shared.Cluster.Release(ctx, r.namespace, name))
	}
}

// The operator, or somebody's `kubectl apply`, puts the definition of Pipelines-as-Code over
// Plumbline's: slots and conditions are not stored. Runs that need a slot wait and run once, when
// Plumbline's definition is back; the others run as always.
func TestForeignDefinitionDelaysOnlyRunsThatNeedSlots(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute: make test-all")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	theirs, err := TheirDefinition(ctx)
	must(t, err)
	ours := func() {
		objects, err := manifests()
		must(t, err)
		must(
			t,
			apply(context.WithoutCancel(ctx), shared.Cluster, objects, func(kind string) bool { return kind == definitions }),
		)
	}
	t.Cleanup(ours)
	patch := fmt.Appendf(nil, `{"data":{"git-allowed-hosts":"127.0.0.1","github-url":%q}}`, shared.Forge.URL())
	_, err = shared.Kube.CoreV1().
		ConfigMaps(product).
		Patch(ctx, product, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	receiver, controller, err := shared.Pair(ctx, false, nil, nil)
	t.Cleanup(func() { _ = errors.Join(receiver.Kill(), controller.Kill()) })
	must(t, err)
	limited := newRepo(ctx, t, "limited", ptr.To(1), receiver)
	first := limited.push(ctx, t, "first")
	eventually(ctx, t, "the first run goes on", limited.check(first, "in_progress", ""))

	must(t, shared.Cluster.Apply(ctx, theirs))
	eventually(ctx, t, "the preflight names the definition", func() error {
		_, out, err := shared.controllerFinds(ctx)
		if want := "repositories.pipelinesascode.tekton.dev is that of Pipelines-as-Code"; !strings.Contains(out, want) {
			return fmt.Errorf("%w: it says %s", err, out)
		}
		return nil
	})
	second := limited.push(ctx, t, "second")
	eventually(ctx, t, "the second run waits", limited.check(second, "queued", ""))
	free := newRepo(ctx, t, "unlimited", nil, receiver)
	other := free.push(ctx, t, "other")
	eventually(ctx, t, "a run without a limit goes on", free.check(other, "in_progress", ""))
	free.release(ctx, t)
	eventually(ctx, t, "it is reported", free.check(other, "completed", "success"))
	limited.release(ctx, t)
	eventually(ctx, t, "the first run is reported", limited.check(first, "completed", "success"))
	eventually(ctx, t, "an Event says that slots are not stored", func() error {
		events, err := shared.Kube.CoreV1().Events(limited.namespace).List(ctx, metav1.ListOptions{})
		for i := range events.Items {
			if events.Items[i].Reason == "SlotsNotStored" {
				return nil
			}
		}
		return fmt.Errorf("there is none: %w", err)
	})
	if names := limited.runs(ctx, t); len(names) != 1 {
		t.Fatalf("the second run was created without a slot: %v", names)
	}
	free.addTheirStatus(ctx, t)

	ours()
	// Caches may keep what a watch of the other definition has shown.
	must(t, errors.Join(receiver.Kill(), controller.Kill()))
	receiver, controller, err = shared.Pair(ctx, false, nil, nil)
	must(t, err)
	limited.receiver, free.receiver = receiver, receiver
	must(t, cluster.Poll(ctx, time.Second, limited.check(second, "in_progress", "")))
	limited.release(ctx, t)
	eventually(ctx, t, "the second run is reported", limited.check(second, "completed", "success"))
	last := free.push(ctx, t, "last")
	eventually(ctx, t, "the last run goes on", free.check(last, "in_progress", ""))
	free.release(ctx, t)
	eventually(ctx, t, "the last run is reported", free.check(last, "completed", "success"))
	eventually(ctx, t, "conditions are stored again", func() error {
		repository, err := shared.Plumbline.PipelinesascodeV1alpha1().Repositories(free.namespace).
			Get(ctx, "app", metav1.GetOptions{})
		if err != nil || !repository.Status.GetCondition("Ready").IsTrue() {
			return fmt.Errorf("%w: %v", err, repository.Status)
		}
		return nil
	})
	if names := append(limited.runs(ctx, t), free.runs(ctx, t)...); len(names) != 4 {
		t.Errorf("four events started %v", names)
	}
}

// addTheirStatus writes what the watcher of Pipelines-as-Code does.
func (r limitedRepo) addTheirStatus(ctx context.Context, t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Cluster.RESTConfig())
	must(t, err)
	all := client.Resource(pacv1alpha1.SchemeGroupVersion.WithResource("repositories")).Namespace(r.namespace)
	object, err := all.Get(ctx, "app", metav1.GetOptions{})
	must(t, err)
	must(
		t,
		unstructured.SetNestedSlice(object.Object, []any{map[string]any{"sha": "0123", "title": "x"}}, "pipelinerun_status"),
	)
	_, err = all.Update(ctx, object, metav1.UpdateOptions{})
	must(t, err)
}
